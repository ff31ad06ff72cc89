//! Timers of one loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::task::Waker;

/// Deadlines in order. A cancelled one stays in the heap until its time and wakes nobody.
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(i64, u64)>>,
    pending: HashMap<u64, Waker>,
    added: u64,
}

impl Timers {
    /// Wakes a task at a time; returns the timer's number.
    pub fn add(&mut self, deadline_ns: i64, waker: &Waker) -> u64 {
        self.added += 1;
        self.heap.push(Reverse((deadline_ns, self.added)));
        self.pending.insert(self.added, waker.clone());
        self.added
    }

    /// Whether its time has not come.
    pub fn is_pending(&self, timer: u64) -> bool {
        self.pending.contains_key(&timer)
    }

    /// Forgets a timer.
    pub fn cancel(&mut self, timer: u64) {
        self.pending.remove(&timer);
    }

    /// The next deadline; it may be a cancelled one's.
    pub fn next_ns(&self) -> Option<i64> {
        self.heap
            .peek()
            .map(|Reverse((deadline_ns, _))| *deadline_ns)
    }

    /// Wakes all whose time has come; returns by how much the latest was late.
    pub fn fire(&mut self, now_ns: i64) -> i64 {
        let mut late_ns = 0;
        while let Some(Reverse((deadline_ns, timer))) = self.heap.peek().copied() {
            if deadline_ns > now_ns {
                break;
            }
            self.heap.pop();
            if let Some(waker) = self.pending.remove(&timer) {
                late_ns = late_ns.max(now_ns - deadline_ns);
                waker.wake();
            }
        }
        late_ns
    }

    /// Wakes all, whatever their time.
    pub fn fire_all(&mut self) {
        self.heap.clear();
        self.pending.drain().for_each(|(_, waker)| waker.wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_once_and_not_if_cancelled() {
        let mut timers = Timers::default();
        let waker = Waker::noop();
        let [late, cancelled, soon] =
            [30, 20, 10].map(|deadline_ns| timers.add(deadline_ns, waker));
        timers.cancel(cancelled);
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(timers.fire(25), 15);
        assert!(!timers.is_pending(soon) && timers.is_pending(late));
        assert_eq!(timers.next_ns(), Some(30));
        timers.fire_all();
        assert!(!timers.is_pending(late));
        assert_eq!(timers.next_ns(), None);
    }
}
