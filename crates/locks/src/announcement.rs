//! How the library says what is in effect, so that anybody can look: the name of a mapping in `/proc/PID/maps`.
//!
//! A program that never locks anything has it too; one that the dynamic linker started without the library, because it
//! is set-uid or linked statically, has not.

use core::fmt::Write;

use crate::config::{Config, FastMutexPolicy};

const LONGEST: usize = 249; // memfd_create(2)

/// A line without the heap.
#[derive(Debug)]
pub struct LineBuffer {
    text: [u8; LONGEST + 1],
    used: usize,
}

impl LineBuffer {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            text: [0; LONGEST + 1],
            used: 0,
        }
    }

    /// What was written; the byte after it is zero.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.text.get(..self.used).unwrap_or_default()
    }
}

impl Default for LineBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for LineBuffer {
    /// Cuts what is too long.
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            if self.used < LONGEST {
                self.text[self.used] = byte;
                self.used += 1;
            }
        }
        Ok(())
    }
}

/// The mapping's name. `refused` says why the kind that was asked for is not in effect.
#[must_use]
pub fn announcement(config: &Config, refused: Option<&str>) -> LineBuffer {
    let mut line = LineBuffer::new();
    let kind = if refused.is_some() {
        "passthrough"
    } else {
        config.kind.name()
    };
    let _ = write!(line, "fairtrial-locks kind={kind}");
    if refused.is_none() && config.kind.spins() {
        let _ = write!(line, " spins={}", config.spins);
    }
    let counts = config.counts && refused.is_none();
    let _ = write!(line, " count={}", if counts { "yes" } else { "no" });
    if config.fast_mutex != FastMutexPolicy::Unset {
        let _ = write!(line, " fastmutex={}", config.fast_mutex.name());
    }
    if let Some(why) = refused {
        let _ = write!(line, " refused={why}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::WaitPolicy;

    fn said(config: Config, refused: Option<&str>) -> String {
        String::from_utf8_lossy(announcement(&config, refused).text()).into_owned()
    }

    #[test]
    fn it_says_what_is_in_effect() {
        let mut config = Config {
            kind: WaitPolicy::Fast,
            spins: 8,
            counts: false,
            fast_mutex: FastMutexPolicy::Unset,
        };
        assert_eq!(
            said(config, None),
            "fairtrial-locks kind=fast spins=8 count=no"
        );
        config.kind = WaitPolicy::PassThrough;
        config.counts = true;
        config.fast_mutex = FastMutexPolicy::Local;
        assert_eq!(
            said(config, None),
            "fairtrial-locks kind=passthrough count=yes fastmutex=local"
        );
    }

    #[test]
    fn what_was_refused_is_not_said_to_be_in_effect() {
        let config = Config {
            kind: WaitPolicy::Ticket,
            spins: 8,
            counts: false,
            fast_mutex: FastMutexPolicy::Unset,
        };
        assert_eq!(
            said(config, Some("layout")),
            "fairtrial-locks kind=passthrough count=no refused=layout"
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_ends_in_a_zero() {
        let mut line = LineBuffer::new();
        for _ in 0..300 {
            let _ = line.write_str("ab");
        }
        assert_eq!(line.text().len(), LONGEST);
        assert_eq!(line.text[LONGEST], 0);
    }
}
