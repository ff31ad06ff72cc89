//! The algorithms of the locks under loom.

mod every_interleaving;
mod every_queue;
