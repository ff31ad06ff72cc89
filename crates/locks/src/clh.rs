//! The queue lock of Craig, and of Landin and Hagersten (both 1993/94): each thread waits on its predecessor's node,
//! and takes that node over once it is passed.
//!
//! As published it spins for ever; here a thread looks a stated number of times and then sleeps, as with
//! [`crate::Mcs`]. There is no link to wait for at an unlock, which makes it shorter.

use core::sync::atomic::Ordering::AcqRel;

use crate::algorithm::Observer;
use crate::word::{Node, Word, node};

/// One lock: the last of its queue, which is never empty. A free lock's is a node that was passed.
pub struct Clh<W> {
    tail: W,
}

/// The nodes that a thread has: one to queue with, and while it holds a lock the one that it takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePair {
    mine: u32,
    before: u32,
}

impl NodePair {
    /// A thread that owns this node, and no lock.
    #[must_use]
    pub fn new(mine: u32) -> Self {
        Self { mine, before: mine }
    }
}

impl<W: Word> Clh<W> {
    /// A free one that owns the node `first`, which must be new.
    #[must_use]
    pub fn new(first: u32) -> Self {
        Self {
            tail: W::new(first),
        }
    }

    /// Takes it.
    pub fn lock<O: Observer>(
        &self,
        nodes: &[Node<W>],
        holder: &mut NodePair,
        looks: u32,
        observer: &mut O,
    ) {
        node(nodes, holder.mine).begin();
        holder.before = self.tail.swap(holder.mine, AcqRel);
        let before = node(nodes, holder.before);
        if !before.is_passed() {
            observer.contended();
            before.until_passed(looks, observer);
        }
    }

    /// Gives it to the next one, if there is one.
    pub fn unlock(&self, nodes: &[Node<W>], holder: &mut NodePair) {
        node(nodes, holder.mine).pass();
        holder.mine = holder.before;
    }
}
