//! The queue lock of Mellor-Crummey and Scott (ACM TOCS 9(1), 1991): each thread waits on a node of its own, which its
//! predecessor writes.
//!
//! As published it spins for ever. Here a thread looks a stated number of times and then sleeps on its node, or else
//! queues of more threads than processors would wait for threads that do not run.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::algorithm::Observer;
use crate::word::{NOBODY, Node, Word, node};

const LOOKS_AT_LINK: u32 = 100; // before the processor is given to a successor that was stopped between two stores

/// One lock: the last of its queue.
pub struct Mcs<W> {
    tail: W,
}

impl<W: Word> Mcs<W> {
    /// A free one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tail: W::new(NOBODY),
        }
    }

    /// Takes it with the node `mine`, which must stand in no queue; `nodes` are those of all threads.
    pub fn lock<O: Observer>(&self, nodes: &[Node<W>], mine: u32, looks: u32, observer: &mut O) {
        let own = node(nodes, mine);
        own.begin();
        let before = self.tail.swap(mine, AcqRel);
        if before != NOBODY {
            observer.contended();
            node(nodes, before).next().store(mine, Release);
            own.until_passed(looks, observer);
        }
    }

    /// Gives it to the next one; `mine` is the node that it was taken with, and is free after this.
    pub fn unlock(&self, nodes: &[Node<W>], mine: u32) {
        let own = node(nodes, mine);
        let mut next = own.next().load(Acquire);
        if next == NOBODY {
            if self.tail.replace(mine, NOBODY, (Release, Relaxed)) {
                return;
            }
            next = linked(own);
        }
        node(nodes, next).pass();
    }
}

/// Who comes after `own`: somebody stands behind it and is about to say so.
fn linked<W: Word>(own: &Node<W>) -> u32 {
    let mut looks = 0;
    loop {
        let next = own.next().load(Acquire);
        if next != NOBODY {
            return next;
        }
        if looks < LOOKS_AT_LINK {
            looks += 1;
            W::relax();
        } else {
            W::give_way();
        }
    }
}

impl<W: Word> Default for Mcs<W> {
    fn default() -> Self {
        Self::new()
    }
}
