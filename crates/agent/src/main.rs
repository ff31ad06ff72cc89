//! The agent.

fn main() {}
