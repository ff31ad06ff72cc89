//! What the agent does as a process of its own, and what its commands say.

mod govern;
mod native;
mod serve;
