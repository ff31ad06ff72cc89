//! A queue between two threads with a limit on what waits in it, closed at once when the stream ends.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A bounded queue. `limit` and every weight have one unit, bytes or items.
pub struct BoundedQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
    limit: usize,
}

/// Urgent items that may wait: a peer that asks and never reads is not answered without end.
const URGENT_ITEMS: usize = 64;

struct QueueState<T> {
    items: VecDeque<(usize, T)>,
    /// Urgent items, all of them before the others.
    urgent: VecDeque<T>,
    weight: usize,
    closed: bool,
    /// Whether an item was popped and its reader has not come back: it may still be at work on it.
    in_hand: bool,
    /// How many items were ever popped.
    popped: u64,
}

impl<T> QueueState<T> {
    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.urgent.is_empty() && !self.in_hand
    }
}

impl<T> BoundedQueue<T> {
    /// An empty, open queue.
    pub fn new(limit: usize) -> Self {
        let state = QueueState {
            items: VecDeque::new(),
            urgent: VecDeque::new(),
            weight: 0,
            closed: false,
            in_hand: false,
            popped: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            limit,
        }
    }

    /// Appends; waits while the queue is full. An item for a closed queue is dropped: nobody is left to read it.
    pub fn push(&self, item: T, weight: usize) {
        let mut state = self.lock();
        while state.weight > 0 && state.weight + weight > self.limit && !state.closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if !state.closed {
            state.weight += weight;
            state.items.push_back((weight, item));
            self.changed.notify_all();
        }
    }

    /// Puts an item before all that are not urgent; waits only while too many of those that are wait themselves.
    pub fn push_urgent(&self, item: T) {
        let mut state = self.lock();
        while state.urgent.len() >= URGENT_ITEMS && !state.closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if !state.closed {
            state.urgent.push_back(item);
            self.changed.notify_all();
        }
    }

    /// Takes the oldest item, an urgent one first; waits for one. `None`: closed, and nothing is left.
    pub fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        state.in_hand = false;
        self.changed.notify_all();
        loop {
            let next = match state.urgent.pop_front() {
                Some(item) => Some((0, item)),
                None => state.items.pop_front(),
            };
            if let Some((weight, item)) = next {
                state.weight -= weight;
                state.in_hand = true;
                state.popped += 1;
                self.changed.notify_all();
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more items. What waits can still be popped.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Takes no more items and drops what waits.
    pub fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.items.clear();
        state.urgent.clear();
        state.weight = 0;
        state.in_hand = false;
        self.changed.notify_all();
    }

    /// Waits until nothing is left and the reader has come back from the last item, `limit` at most.
    pub fn wait_empty(&self, limit: Duration) {
        let _ = self
            .changed
            .wait_timeout_while(self.lock(), limit, |state| !state.is_empty());
    }

    /// Waits until something is in the queue, and then until an item is popped or nothing is left, `limit` at most.
    /// Whether neither happened: its reader is stuck.
    pub fn is_stuck(&self, limit: Duration) -> bool {
        let state = self
            .changed
            .wait_while(self.lock(), |state| state.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let popped = state.popped;
        let (_state, waited) = self
            .changed
            .wait_timeout_while(state, limit, |state| {
                state.popped == popped && !state.is_empty()
            })
            .unwrap_or_else(PoisonError::into_inner);
        waited.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn items_come_in_order_and_urgent_ones_before_all() {
        let queue = BoundedQueue::new(10);
        queue.push("first", 1);
        queue.push("second", 1);
        queue.push_urgent("urgent");
        queue.close();
        queue.push("late", 1);
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(popped, ["urgent", "first", "second"]);
    }

    #[test]
    fn urgent_items_are_not_kept_without_end() {
        let queue = Arc::new(BoundedQueue::new(1));
        let writer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..=URGENT_ITEMS).for_each(|number| queue.push_urgent(number)))
        };
        while queue.lock().urgent.len() < URGENT_ITEMS {
            thread::yield_now();
        }
        assert!(!writer.is_finished(), "one is too many");
        assert_eq!(queue.pop(), Some(0), "in their order");
        writer.join().expect("it went on");
    }

    #[test]
    fn a_full_queue_holds_its_writer_until_there_is_room() {
        let queue = Arc::new(BoundedQueue::new(3));
        queue.push(1, 3);
        let writer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(2, 1))
        };
        assert_eq!(queue.pop(), Some(1));
        writer.join().expect("the writer went on");
        assert_eq!(queue.pop(), Some(2));
    }

    #[test]
    fn an_item_larger_than_the_limit_passes_alone() {
        let queue = BoundedQueue::new(3);
        queue.push("large", 100);
        assert_eq!(queue.pop(), Some("large"));
    }

    #[test]
    fn a_stuck_writer_and_a_waiting_reader_go_on_when_the_stream_is_given_up() {
        let full = Arc::new(BoundedQueue::new(1));
        full.push(1, 1);
        let empty: Arc<BoundedQueue<i32>> = Arc::new(BoundedQueue::new(1));
        let (stuck, waiting) = (Arc::clone(&full), Arc::clone(&empty));
        let writer = thread::spawn(move || stuck.push(2, 1));
        let reader = thread::spawn(move || waiting.pop());
        full.abandon();
        empty.abandon();
        writer.join().expect("the writer went on");
        assert_eq!(reader.join().expect("the reader went on"), None);
        assert_eq!(full.pop(), None);
    }

    #[test]
    fn last_words_are_not_waited_for_without_end() {
        let queue = BoundedQueue::new(1);
        queue.push("unread", 1);
        queue.close();
        queue.wait_empty(Duration::from_millis(1));
        assert_eq!(queue.pop(), Some("unread"));
        assert_eq!(queue.pop(), None);
        queue.wait_empty(Duration::MAX);
    }

    #[test]
    fn a_reader_that_takes_nothing_is_stuck_and_a_slow_one_is_not() {
        let queue = Arc::new(BoundedQueue::new(10));
        queue.push(1, 1);
        assert!(queue.is_stuck(Duration::from_millis(1)));
        assert_eq!(queue.pop(), Some(1));
        assert!(queue.is_stuck(Duration::from_millis(1)), "still in hand");
        let asking = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.is_stuck(Duration::MAX))
        };
        while !asking.is_finished() {
            queue.push(2, 1);
            assert_eq!(queue.pop(), Some(2));
        }
        assert!(!asking.join().expect("it answered"));
    }

    #[test]
    fn the_last_item_is_waited_for_until_its_reader_comes_back() {
        let queue = Arc::new(BoundedQueue::new(10));
        let written = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (reading, writing) = (Arc::clone(&queue), Arc::clone(&written));
        let reader = thread::spawn(move || {
            while let Some(item) = reading.pop() {
                thread::sleep(Duration::from_millis(50)); // a slow link
                writing.lock().expect("whole").push(item);
            }
        });
        queue.push(1, 1);
        queue.push(2, 1);
        queue.close();
        queue.wait_empty(Duration::MAX);
        assert_eq!(*written.lock().expect("whole"), [1, 2]);
        reader.join().expect("the reader went on");
    }
}
