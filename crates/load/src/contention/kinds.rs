//! The locks themselves: the algorithms of `fairtrial-locks` over memory whose layout is chosen here.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{self, AcqRel, Acquire, Relaxed, Release},
};

use fairtrial_locks::{
    Algorithm, Clh, Mcs, Node, NodePair, Observer, PassThrough, QueueMemory, RealMutex, Spin,
    SpinState, Ticket, Word,
};
use rustix::thread::futex;

/// `PTHREAD_MUTEX_ADAPTIVE_NP` of glibc, which has it alone.
const ADAPTIVE: c_int = 3;

/// What a thread brings to any lock: at most one is held at a time.
pub struct ThreadContext<'a> {
    /// Nodes of all threads, then of all locks.
    nodes: &'a [Node<Futex>],
    mine: u32,
    holder: NodePair,
    looks: u32,
}

impl<'a> ThreadContext<'a> {
    /// Of the thread with this number, from 0.
    pub fn new(thread: u32, nodes: &'a [Node<Futex>], looks: u32) -> Self {
        let mine = thread + 1;
        Self {
            nodes,
            mine,
            holder: NodePair::new(mine),
            looks,
        }
    }
}

/// A lock of one kind.
pub trait Lock: Sync + Sized {
    /// A free one that owns a node; `spins` is what algorithms read beside it.
    fn new(node: u32, spins: u32) -> Self;
    /// Finishes it where it will stay.
    fn settle(&self) -> io::Result<()> {
        Ok(())
    }
    /// Takes it.
    fn lock<O: Observer>(&self, context: &mut ThreadContext<'_>, observer: &mut O);
    /// Gives it back.
    fn unlock(&self, context: &mut ThreadContext<'_>);
}

/// A word that threads sleep on by a futex.
pub struct Futex(AtomicU32);

impl Word for Futex {
    fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }

    fn replace(&self, from: u32, to: u32, orders: (Ordering, Ordering)) -> bool {
        self.0
            .compare_exchange(from, to, orders.0, orders.1)
            .is_ok()
    }

    fn park(&self, expected: u32) {
        sleep(&self.0, expected);
    }

    fn wake(&self) {
        wake(&self.0, 1);
    }

    fn relax() {
        std::hint::spin_loop();
    }

    fn give_way() {
        rustix::thread::sched_yield();
    }
}

/// Sleeps while the word is `expected`; signals and other values only make the caller look again.
fn sleep(word: &AtomicU32, expected: u32) {
    let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
}

fn wake(word: &AtomicU32, threads: u32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, threads);
}

impl Lock for Mcs<Futex> {
    fn new(_node: u32, _spins: u32) -> Self {
        Mcs::new()
    }

    fn lock<O: Observer>(&self, context: &mut ThreadContext<'_>, observer: &mut O) {
        Mcs::lock(self, context.nodes, context.mine, context.looks, observer);
    }

    fn unlock(&self, context: &mut ThreadContext<'_>) {
        Mcs::unlock(self, context.nodes, context.mine);
    }
}

impl Lock for Clh<Futex> {
    fn new(node: u32, _spins: u32) -> Self {
        Clh::new(node)
    }

    fn lock<O: Observer>(&self, context: &mut ThreadContext<'_>, observer: &mut O) {
        Clh::lock(
            self,
            context.nodes,
            &mut context.holder,
            context.looks,
            observer,
        );
    }

    fn unlock(&self, context: &mut ThreadContext<'_>) {
        Clh::unlock(self, context.nodes, &mut context.holder);
    }
}

impl Lock for Spin<Futex> {
    fn new(_node: u32, _spins: u32) -> Self {
        Spin::new()
    }

    fn lock<O: Observer>(&self, _context: &mut ThreadContext<'_>, observer: &mut O) {
        Spin::lock(self, observer);
    }

    fn unlock(&self, _context: &mut ThreadContext<'_>) {
        Spin::unlock(self);
    }
}

/// Whose mutexes these are: the agent is linked statically, and brings its own.
pub fn library() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it is a string that lives as long as the program (gnu_get_libc_version(3)).
        #[allow(unsafe_code)]
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    "musl".to_owned()
}

/// The C library's mutex, of its default kind or adaptive.
pub struct PthreadMutex<const IS_ADAPTIVE: bool>(UnsafeCell<libc::pthread_mutex_t>);

#[allow(unsafe_code)] // what a mutex is for
// SAFETY: pthreads look at it through one address from many threads, and so does nobody else.
unsafe impl<const IS_ADAPTIVE: bool> Sync for PthreadMutex<IS_ADAPTIVE> {}

impl<const IS_ADAPTIVE: bool> PthreadMutex<IS_ADAPTIVE> {
    fn give_back(&self) {
        // SAFETY: it was initialised, and this thread holds it.
        #[allow(unsafe_code)]
        let answer = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        assert_eq!(answer, 0, "a plain mutex that is held can be unlocked");
    }
}

#[allow(unsafe_code)] // pthreads are called
impl<const IS_ADAPTIVE: bool> RealMutex for PthreadMutex<IS_ADAPTIVE> {
    fn try_lock(&self) -> c_int {
        // SAFETY: it was initialised and stays where it is.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) }
    }

    fn lock(&self) -> c_int {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }
}

impl<const IS_ADAPTIVE: bool> Lock for PthreadMutex<IS_ADAPTIVE> {
    fn new(_node: u32, _spins: u32) -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    fn settle(&self) -> io::Result<()> {
        if !IS_ADAPTIVE {
            return Ok(());
        }
        let mut attribute = std::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attribute = attribute.as_mut_ptr();
        // SAFETY: the attribute is initialised first, and nobody has used the mutex yet.
        #[allow(unsafe_code)]
        let answer = unsafe {
            libc::pthread_mutexattr_init(attribute);
            let answer = match libc::pthread_mutexattr_settype(attribute, ADAPTIVE) {
                0 => libc::pthread_mutex_init(self.0.get(), attribute),
                refused => refused,
            };
            libc::pthread_mutexattr_destroy(attribute);
            answer
        };
        if answer == 0 {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(answer))
        }
    }

    fn lock<O: Observer>(&self, _context: &mut ThreadContext<'_>, observer: &mut O) {
        taken(PassThrough::lock(self, observer));
    }

    fn unlock(&self, _context: &mut ThreadContext<'_>) {
        self.give_back();
    }
}

/// Plain mutexes have no other answer.
fn taken(answer: c_int) {
    assert_eq!(answer, 0, "a plain mutex can be locked");
}

/// `MySQL`'s fast mutex in one of its variants: a mutex, with tries and random state behind it as `my_pthread.h` has them.
pub struct Fast<A> {
    mutex: PthreadMutex<false>,
    spins: AtomicU32,
    random: AtomicU32,
    algorithm: PhantomData<fn() -> A>,
}

impl<A> RealMutex for Fast<A> {
    fn try_lock(&self) -> c_int {
        self.mutex.try_lock()
    }

    fn lock(&self) -> c_int {
        RealMutex::lock(&self.mutex)
    }
}

impl<A> SpinState for Fast<A> {
    fn random(&self) -> u32 {
        self.random.load(Relaxed)
    }

    fn set_random(&self, state: u32) {
        self.random.store(state, Relaxed);
    }

    fn spins(&self) -> u32 {
        self.spins.load(Relaxed)
    }
}

impl<A: Algorithm<Self>> Lock for Fast<A> {
    fn new(node: u32, spins: u32) -> Self {
        Self {
            mutex: PthreadMutex::new(node, spins),
            spins: spins.into(),
            random: 1.into(),
            algorithm: PhantomData,
        }
    }

    fn lock<O: Observer>(&self, _context: &mut ThreadContext<'_>, observer: &mut O) {
        taken(A::lock(self, observer));
    }

    fn unlock(&self, _context: &mut ThreadContext<'_>) {
        self.mutex.give_back();
    }
}

/// Where threads sleep by ticket, as in the preloaded library; who is woken for another lock's sake sleeps again.
static BEDS: [AtomicU32; 16_384] = [const { AtomicU32::new(0) }; 16_384];
const HASH: usize = 0x9E37_79B9_7F4A_7C15; // 2^64 divided by the golden ratio (Knuth 6.4)

/// A mutex with a queue of tickets before it.
pub struct TicketMutex {
    mutex: PthreadMutex<false>,
    word: AtomicU64,
}

/// The same with the number of looks that a thread brings.
struct TicketView<'a> {
    lock: &'a TicketMutex,
    looks: u32,
}

impl TicketView<'_> {
    fn bed(&self, ticket: u16) -> &'static AtomicU32 {
        let first = (std::ptr::from_ref(self.lock) as usize).wrapping_mul(HASH) >> 48;
        &BEDS[(first + usize::from(ticket)) % BEDS.len()]
    }
}

impl RealMutex for TicketView<'_> {
    fn try_lock(&self) -> c_int {
        self.lock.mutex.try_lock()
    }

    fn lock(&self) -> c_int {
        RealMutex::lock(&self.lock.mutex)
    }
}

impl QueueMemory for TicketView<'_> {
    fn word(&self) -> u64 {
        self.lock.word.load(Acquire)
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        self.lock
            .word
            .compare_exchange_weak(from, to, AcqRel, Relaxed)
            .is_ok()
    }

    fn add(&self, value: u64) -> u64 {
        self.lock.word.fetch_add(value, AcqRel)
    }

    fn wakings(&self, ticket: u16) -> u32 {
        self.bed(ticket).load(Acquire)
    }

    fn park(&self, ticket: u16, expected: u32) {
        sleep(self.bed(ticket), expected);
    }

    fn wake(&self, ticket: u16) {
        let bed = self.bed(ticket);
        bed.fetch_add(1, Release);
        wake(bed, i32::MAX.unsigned_abs());
    }

    /// Nothing forks here.
    fn generation(&self) -> u16 {
        0
    }

    fn looks(&self) -> u32 {
        self.looks
    }
}

impl Lock for TicketMutex {
    fn new(node: u32, spins: u32) -> Self {
        Self {
            mutex: PthreadMutex::new(node, spins),
            word: 0.into(),
        }
    }

    fn lock<O: Observer>(&self, context: &mut ThreadContext<'_>, observer: &mut O) {
        let view = TicketView {
            lock: self,
            looks: context.looks,
        };
        taken(Ticket::lock(&view, observer));
    }

    fn unlock(&self, _context: &mut ThreadContext<'_>) {
        self.mutex.give_back();
    }
}

/// Locks in a row, side by side or apart.
pub trait LockRow<L>: Sync {
    /// That many, made by `new` from their numbers.
    fn of(count: u32, new: impl Fn(u32) -> L) -> Self;
    /// One of them.
    fn at(&self, number: usize) -> &L;
    /// How far one lies from the next.
    const STRIDE: usize;
}

/// Side by side, as an array has them: as many in a cache line as there is space for.
pub struct PackedRow<L>(Box<[L]>);

impl<L: Sync> LockRow<L> for PackedRow<L> {
    fn of(count: u32, new: impl Fn(u32) -> L) -> Self {
        Self((0..count).map(new).collect())
    }

    fn at(&self, number: usize) -> &L {
        &self.0[number]
    }

    const STRIDE: usize = size_of::<L>();
}

/// On two cache lines of its own: processors fetch them by pairs.
#[repr(align(128))]
struct CachePadded<L>(L);

/// Each on cache lines of its own.
pub struct PaddedRow<L>(Box<[CachePadded<L>]>);

impl<L: Sync> LockRow<L> for PaddedRow<L> {
    fn of(count: u32, new: impl Fn(u32) -> L) -> Self {
        Self((0..count).map(|number| CachePadded(new(number))).collect())
    }

    fn at(&self, number: usize) -> &L {
        &self.0[number].0
    }

    const STRIDE: usize = size_of::<CachePadded<L>>();
}
