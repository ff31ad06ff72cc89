//! The algorithms under loom: every interleaving of two or three threads, as the memory model allows it.
//!
//! Exclusion is loom's own finding: the guarded number is a cell whose two uses at once it refuses. A thread that nobody
//! wakes is one, too: loom reports a deadlock.

use core::ffi::c_int;

use fairtrial_locks::{
    Algorithm, FastConstant, FastLocal, FastPublished, NoObserver, Off, QueueMemory, RealMutex,
    SpinState, Ticket,
};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use loom::sync::{Arc, Condvar, Mutex};

const BEDS: usize = 2;

/// A real lock that sleeps, and what lies beside it.
struct ModelLock {
    taken: Mutex<bool>,
    freed: Condvar,
    random: AtomicU32,
    word: AtomicU64,
    wakings: [Mutex<u32>; BEDS],
    woken: [Condvar; BEDS],
    spins: u32,
    guarded: UnsafeCell<u32>,
}

impl ModelLock {
    fn new(spins: u32) -> Self {
        Self {
            taken: Mutex::new(false),
            freed: Condvar::new(),
            random: AtomicU32::new(0),
            word: AtomicU64::new(0),
            wakings: [Mutex::new(0), Mutex::new(0)],
            woken: [Condvar::new(), Condvar::new()],
            spins,
            guarded: UnsafeCell::new(0),
        }
    }

    fn unlock(&self) {
        *held(&self.taken) = false;
        self.freed.notify_one();
    }

    #[allow(unsafe_code)] // loom's cell checks what is promised
    fn use_it(&self) {
        // SAFETY: whoever comes here holds the lock; loom finds out if not.
        self.guarded.with_mut(|number| unsafe { *number += 1 });
    }
}

fn held<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|_| panic!("a thread has panicked"))
}

impl RealMutex for ModelLock {
    fn try_lock(&self) -> c_int {
        let mut taken = held(&self.taken);
        if core::mem::replace(&mut *taken, true) {
            libc::EBUSY
        } else {
            0
        }
    }

    fn lock(&self) -> c_int {
        let mut taken = held(&self.taken);
        while *taken {
            taken = self
                .freed
                .wait(taken)
                .unwrap_or_else(|_| panic!("a thread has panicked"));
        }
        *taken = true;
        0
    }

    fn delay(&self, _loops: u32) {
        loom::thread::yield_now();
    }

    fn relax(&self) {
        loom::thread::yield_now();
    }
}

impl SpinState for ModelLock {
    fn random(&self) -> u32 {
        self.random.load(Relaxed)
    }

    fn set_random(&self, state: u32) {
        self.random.store(state, Relaxed);
    }

    fn spins(&self) -> u32 {
        self.spins
    }
}

impl QueueMemory for ModelLock {
    fn word(&self) -> u64 {
        self.word.load(Acquire)
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        self.word
            .compare_exchange(from, to, AcqRel, Relaxed)
            .is_ok()
    }

    fn add(&self, value: u64) -> u64 {
        self.word.fetch_add(value, AcqRel)
    }

    fn wakings(&self, ticket: u16) -> u32 {
        *held(&self.wakings[usize::from(ticket) % BEDS])
    }

    fn park(&self, ticket: u16, expected: u32) {
        let bed = usize::from(ticket) % BEDS;
        let wakings = held(&self.wakings[bed]);
        if *wakings == expected {
            drop(self.woken[bed].wait(wakings));
        }
    }

    fn wake(&self, ticket: u16) {
        let bed = usize::from(ticket) % BEDS;
        *held(&self.wakings[bed]) += 1;
        self.woken[bed].notify_all();
    }

    fn generation(&self) -> u16 {
        0
    }

    fn looks(&self) -> u32 {
        self.spins
    }
}

/// How much of it loom looks at: all, or all with so many forced switches from one thread to another.
fn model(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(body);
}

fn excludes<A: Algorithm<ModelLock> + 'static>(
    threads: usize,
    spins: u32,
    preemptions: Option<usize>,
) {
    model(preemptions, move || {
        let lock = Arc::new(ModelLock::new(spins));
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let lock = Arc::clone(&lock);
                loom::thread::spawn(move || take::<A>(&lock))
            })
            .collect();
        take::<A>(&lock);
        for each in others {
            each.join()
                .unwrap_or_else(|_| panic!("a thread has panicked"));
        }
        let used = lock.guarded.with(|number| {
            // SAFETY: all others have ended.
            #[allow(unsafe_code)]
            unsafe {
                *number
            }
        });
        assert_eq!(used as usize, threads);
    });
}

fn take<A: Algorithm<ModelLock>>(lock: &ModelLock) {
    assert_eq!(A::lock(lock, &mut NoObserver), 0);
    lock.use_it();
    lock.unlock();
}

#[test]
fn two_threads_of_every_kind() {
    excludes::<Off>(2, 0, None);
    excludes::<FastPublished>(2, 2, None);
    excludes::<FastLocal>(2, 2, None);
    excludes::<FastConstant>(2, 2, None);
}

#[test]
fn two_threads_with_tickets_that_sleep_at_once() {
    excludes::<Ticket>(2, 0, None);
}

#[test]
fn two_threads_with_tickets_that_look_first() {
    excludes::<Ticket>(2, 1, Some(3));
}

#[test]
fn three_threads_with_tickets() {
    excludes::<Ticket>(3, 0, Some(2));
}

#[test]
fn three_threads_of_the_published_kind() {
    excludes::<FastPublished>(3, 1, Some(2));
}

/// A wait for a condition ends inside glibc, which takes the real lock without a ticket.
#[test]
fn one_thread_comes_past_the_queue() {
    model(Some(3), || {
        let lock = Arc::new(ModelLock::new(0));
        let queued = {
            let lock = Arc::clone(&lock);
            loom::thread::spawn(move || take::<Ticket>(&lock))
        };
        assert_eq!(lock.lock(), 0);
        lock.use_it();
        lock.unlock();
        take::<Ticket>(&lock);
        queued
            .join()
            .unwrap_or_else(|_| panic!("a thread has panicked"));
    });
}
