//! MCS, CLH and spinning locks under loom: every interleaving, with the orders of memory that the code really asks for.
//!
//! Exclusion is loom's own finding, on a cell; a thread that nobody wakes is a deadlock that it reports.

use fairtrial_locks::{Clh, Mcs, NoObserver, Node, NodePair, Spin, Word};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{self, Acquire},
};
use loom::sync::{Arc, Condvar, Mutex};

/// A word, and a bed beside it.
struct ModelWord {
    value: AtomicU32,
    bed: Mutex<()>,
    woken: Condvar,
}

impl Word for ModelWord {
    fn new(value: u32) -> Self {
        Self {
            value: AtomicU32::new(value),
            bed: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    fn load(&self, order: Ordering) -> u32 {
        self.value.load(order)
    }

    fn store(&self, value: u32, order: Ordering) {
        self.value.store(value, order);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.value.swap(value, order)
    }

    fn replace(&self, from: u32, to: u32, orders: (Ordering, Ordering)) -> bool {
        self.value
            .compare_exchange(from, to, orders.0, orders.1)
            .is_ok()
    }

    /// As a futex does it: the look and falling asleep are one step for whoever wakes.
    fn park(&self, expected: u32) {
        let bed = self
            .bed
            .lock()
            .unwrap_or_else(|_| panic!("a thread has panicked"));
        if self.value.load(Acquire) == expected {
            drop(self.woken.wait(bed));
        }
    }

    fn wake(&self) {
        drop(self.bed.lock());
        self.woken.notify_all();
    }

    fn relax() {
        loom::thread::yield_now();
    }

    fn give_way() {
        loom::thread::yield_now();
    }
}

/// A lock of some kind with the number that it guards; a thread is known by its number, from 1 on.
trait Guard: Sync + Send + 'static {
    type ThreadContext: Send;
    fn free(threads: u32) -> Self;
    fn context(thread: u32) -> Self::ThreadContext;
    fn lock(&self, context: &mut Self::ThreadContext, looks: u32);
    fn unlock(&self, context: &mut Self::ThreadContext);
}

fn nodes(count: u32) -> Vec<Node<ModelWord>> {
    (0..count).map(|_| Node::new()).collect()
}

impl Guard for (Mcs<ModelWord>, Vec<Node<ModelWord>>) {
    type ThreadContext = u32;

    fn free(threads: u32) -> Self {
        (Mcs::new(), nodes(threads))
    }

    fn context(thread: u32) -> u32 {
        thread
    }

    fn lock(&self, context: &mut u32, looks: u32) {
        self.0.lock(&self.1, *context, looks, &mut NoObserver);
    }

    fn unlock(&self, context: &mut u32) {
        self.0.unlock(&self.1, *context);
    }
}

impl Guard for (Clh<ModelWord>, Vec<Node<ModelWord>>) {
    type ThreadContext = NodePair;

    fn free(threads: u32) -> Self {
        (Clh::new(threads + 1), nodes(threads + 1))
    }

    fn context(thread: u32) -> NodePair {
        NodePair::new(thread)
    }

    fn lock(&self, context: &mut NodePair, looks: u32) {
        self.0.lock(&self.1, context, looks, &mut NoObserver);
    }

    fn unlock(&self, context: &mut NodePair) {
        self.0.unlock(&self.1, context);
    }
}

impl Guard for Spin<ModelWord> {
    type ThreadContext = ();

    fn free(_threads: u32) -> Self {
        Spin::new()
    }

    fn context(_thread: u32) {}

    fn lock(&self, _own: &mut (), _looks: u32) {
        Spin::lock(self, &mut NoObserver);
    }

    fn unlock(&self, _own: &mut ()) {
        Spin::unlock(self);
    }
}

/// What all threads share.
struct ModelState<G> {
    lock: G,
    guarded: UnsafeCell<u32>,
}

#[allow(unsafe_code)] // loom's cell finds out whether two threads are inside at once
// SAFETY: that it is shared only under the lock is what is tested here.
unsafe impl<G: Guard> Sync for ModelState<G> {}

impl<G: Guard> ModelState<G> {
    #[allow(unsafe_code)] // as above
    fn take(&self, thread: u32, times: u32, looks: u32) {
        let mut context = G::context(thread);
        for _ in 0..times {
            self.lock.lock(&mut context, looks);
            // SAFETY: loom refuses two at once.
            self.guarded.with_mut(|number| unsafe { *number += 1 });
            self.lock.unlock(&mut context);
        }
    }
}

/// `threads` threads take one lock so many times each; all interleavings, or those with so many forced switches.
fn excludes<G: Guard>(threads: u32, times: u32, looks: u32, preemptions: Option<usize>) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        let shared = Arc::new(ModelState {
            lock: G::free(threads),
            guarded: UnsafeCell::new(0),
        });
        let others: Vec<_> = (2..=threads)
            .map(|thread| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || shared.take(thread, times, looks))
            })
            .collect();
        shared.take(1, times, looks);
        for each in others {
            each.join()
                .unwrap_or_else(|_| panic!("a thread has panicked"));
        }
        // SAFETY: all others have ended.
        #[allow(unsafe_code)]
        let used = shared.guarded.with(|number| unsafe { *number });
        assert_eq!(used, threads * times);
    });
}

type McsLock = (Mcs<ModelWord>, Vec<Node<ModelWord>>);
type ClhLock = (Clh<ModelWord>, Vec<Node<ModelWord>>);

#[test]
fn two_threads_with_mcs_that_sleep_at_once() {
    excludes::<McsLock>(2, 1, 0, None);
}

#[test]
fn two_threads_with_mcs_whose_nodes_are_used_again() {
    excludes::<McsLock>(2, 2, 0, Some(3));
}

#[test]
fn two_threads_with_mcs_that_look_first() {
    excludes::<McsLock>(2, 1, 1, Some(3));
}

#[test]
fn three_threads_with_mcs() {
    excludes::<McsLock>(3, 1, 0, Some(2));
}

#[test]
fn two_threads_with_clh_that_sleep_at_once() {
    excludes::<ClhLock>(2, 1, 0, None);
}

#[test]
fn two_threads_with_clh_whose_nodes_go_round() {
    excludes::<ClhLock>(2, 2, 0, Some(3));
}

#[test]
fn two_threads_with_clh_that_look_first() {
    excludes::<ClhLock>(2, 1, 1, Some(3));
}

#[test]
fn three_threads_with_clh() {
    excludes::<ClhLock>(3, 1, 0, Some(2));
}

#[test]
fn two_threads_that_spin() {
    excludes::<Spin<ModelWord>>(2, 1, 0, None);
}
