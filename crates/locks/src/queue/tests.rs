use core::cell::{Cell, RefCell};

use super::*;

/// A queue of one thread, which does all that others would do.
#[derive(Default)]
struct LoneThread {
    word: Cell<u64>,
    generation: Cell<u16>,
    woken: RefCell<Vec<u16>>,
    parked: Cell<u32>,
    looks: u32,
}

impl QueueMemory for LoneThread {
    fn word(&self) -> u64 {
        self.word.get()
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        let same = self.word.get() == from;
        if same {
            self.word.set(to);
        }
        same
    }

    fn add(&self, value: u64) -> u64 {
        self.word.replace(self.word.get().wrapping_add(value))
    }

    fn wakings(&self, _ticket: u16) -> u32 {
        0
    }

    /// Whoever is in front passes while this one sleeps.
    fn park(&self, _ticket: u16, _seen: u32) {
        self.parked.set(self.parked.get() + 1);
        let front = Turn {
            number: served_of(self.word.get()),
            generation: self.generation.get(),
        };
        Queue { place: self }.pass(front);
    }

    fn wake(&self, ticket: u16) {
        self.woken.borrow_mut().push(ticket);
    }

    fn generation(&self) -> u16 {
        self.generation.get()
    }

    fn looks(&self) -> u32 {
        self.looks
    }
}

fn joined(queue: &Queue<'_, LoneThread>) -> Turn {
    queue.join().unwrap_or_else(|| panic!("the queue is full"))
}

#[test]
fn tickets_are_served_in_order() {
    let place = LoneThread::default();
    let queue = Queue { place: &place };
    let first = joined(&queue);
    let second = joined(&queue);
    assert!(queue.until_served(first, || panic!("nobody is before the first")));
    queue.pass(first);
    assert!(queue.until_served(second, || panic!("the first is gone")));
    queue.pass(second);
    assert_eq!(served_of(place.word()), next_of(place.word()));
    assert!(
        place.woken.borrow().is_empty(),
        "nobody slept, nobody is woken"
    );
}

#[test]
fn who_looks_long_enough_sleeps_and_is_woken() {
    let place = LoneThread {
        looks: 3,
        ..LoneThread::default()
    };
    let queue = Queue { place: &place };
    let first = joined(&queue);
    let second = joined(&queue);
    let looked = Cell::new(0);
    assert!(queue.until_served(second, || looked.set(looked.get() + 1)));
    assert_eq!(looked.get(), 4);
    assert_eq!(place.parked.get(), 1);
    assert_eq!(*place.woken.borrow(), [second.number]);
    assert_eq!(sleepers_of(place.word()), 0);
    assert_ne!(first.number, second.number);
}

#[test]
fn the_numbers_go_round_without_touching_their_neighbours() {
    let place = LoneThread::default();
    place.generation.set(0xABCD);
    let queue = Queue { place: &place };
    for _ in 0..3 * 65_536 {
        let turn = joined(&queue);
        assert!(queue.until_served(turn, || panic!("nobody is before it")));
        queue.pass(turn);
        assert_eq!(generation_of(place.word()), 0xABCD);
        assert_eq!(sleepers_of(place.word()), 0);
    }
    assert_eq!(served_of(place.word()), next_of(place.word()));
}

#[test]
fn a_queue_that_is_full_is_passed_by() {
    let place = LoneThread::default();
    let queue = Queue { place: &place };
    let first = joined(&queue);
    for _ in 1..LONGEST {
        joined(&queue);
    }
    assert_eq!(queue.join(), None);
    queue.pass(first);
    assert!(queue.join().is_some());
}

#[test]
fn tickets_of_threads_that_a_fork_left_behind_are_void() {
    let place = LoneThread::default();
    let queue = Queue { place: &place };
    let before = joined(&queue);
    joined(&queue);
    place.generation.set(1);
    assert!(!queue.until_served(before, || panic!("void at once")));
    let after = joined(&queue);
    assert!(queue.until_served(after, || panic!("nobody of this process is before it")));
    queue.pass(before);
    assert_eq!(
        served_of(place.word()),
        after.number,
        "a void ticket passes nothing on"
    );
    queue.pass(after);
    assert_eq!(served_of(place.word()), next_of(place.word()));
}
