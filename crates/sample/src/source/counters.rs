//! What every source is to the sampler.

use std::io;

/// One row: a value for each column, nothing where the kernel did not say one.
pub type Row = [Option<u64>];

/// A source of counters.
pub trait Counters {
    /// Names of its columns, fixed when it was opened.
    fn columns(&self) -> &[String];

    /// Fills a row, all of it nothing before. An error ends the source.
    fn read(&mut self, row: &mut Row) -> io::Result<()>;
}

/// What a kernel does not print.
pub fn damaged(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("not what a kernel prints: {what}"),
    )
}
