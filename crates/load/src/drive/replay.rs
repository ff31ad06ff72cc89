//! Arrivals at recorded times, from a file that the controller has checked and sent.

use std::path::Path;
use std::sync::Arc;

use crate::error::LoadError;

/// Bytes of one time.
const TIME_BYTES: usize = 8;

/// Most arrivals of a file: 40 MB here, and a day at 57 a second.
pub const LONGEST: usize = 5_000_000;

/// Times of arrivals, read once and shared.
#[derive(Clone, Debug)]
pub struct ReplayTrace {
    times_ns: Arc<[i64]>,
    /// How much later each time is in the next round, if there is one.
    round_ns: Option<i64>,
}

impl ReplayTrace {
    /// The time of an arrival, counted from 0; nothing after the last.
    pub fn time_ns(&self, count: u64) -> Option<i64> {
        let length = self.times_ns.len() as u64;
        let (round, index) = (count / length, usize::try_from(count % length).ok()?);
        let later_ns = match self.round_ns {
            _ if round == 0 => 0,
            Some(round_ns) => round_ns.saturating_mul(i64::try_from(round).ok()?),
            None => return None,
        };
        Some(self.times_ns[index].saturating_add(later_ns))
    }
}

/// Reads a file of times.
pub fn read(path: &str, again: bool) -> Result<ReplayTrace, LoadError> {
    let refuse = |problem: String| LoadError::parameter("arrivals", format!("{path}: {problem}"));
    let bytes = std::fs::read(Path::new(path)).map_err(|error| refuse(error.to_string()))?;
    let (times, rest) = bytes.as_chunks::<TIME_BYTES>();
    if !rest.is_empty() || times.is_empty() || times.len() > LONGEST {
        return Err(refuse(format!(
            "expected from 1 to {LONGEST} times of {TIME_BYTES} bytes, found {} bytes",
            bytes.len()
        )));
    }
    let times_ns: Arc<[i64]> = times.iter().map(|time| i64::from_le_bytes(*time)).collect();
    let sorted = times_ns.is_sorted();
    let (first, last) = (times_ns[0], times_ns[times_ns.len() - 1]);
    if first != 0 || !sorted {
        return Err(refuse("times must begin with 0 and never fall".into()));
    }
    if again && last == 0 {
        return Err(refuse(
            "a replay that repeats needs two different times".into(),
        ));
    }
    // The mean gap lies between the last and the first of the next round, so that the mean rate stays.
    let gaps = i64::try_from(times_ns.len() - 1).unwrap_or(i64::MAX).max(1);
    Ok(ReplayTrace {
        times_ns,
        round_ns: again.then_some(last.saturating_add(last / gaps)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(times_ns: &[i64]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let bytes: Vec<u8> = times_ns
            .iter()
            .flat_map(|time| time.to_le_bytes())
            .collect();
        std::fs::write(file.path(), bytes).expect("written");
        file
    }

    fn replayed(times_ns: &[i64], again: bool) -> Result<ReplayTrace, LoadError> {
        read(&file(times_ns).path().to_string_lossy(), again)
    }

    #[test]
    fn times_come_as_recorded_and_then_no_more() {
        let replayed = replayed(&[0, 5, 5, 30], false).expect("good times");
        let times: Vec<_> = (0..6).map(|count| replayed.time_ns(count)).collect();
        assert_eq!(times, [Some(0), Some(5), Some(5), Some(30), None, None]);
    }

    #[test]
    fn a_round_begins_again_after_the_mean_gap() {
        let replayed = replayed(&[0, 5, 5, 30], true).expect("good times");
        let times: Vec<_> = (3..9).map(|count| replayed.time_ns(count)).collect();
        assert_eq!(times, [30, 40, 45, 45, 70, 80].map(Some));
        assert_eq!(replayed.time_ns(4_000_000_000), Some(40_000_000_000));
    }

    #[test]
    fn files_that_are_no_times_are_refused_by_name() {
        for (times, again) in [
            (&[][..], false),
            (&[0, 9, 8], false),
            (&[3, 4], false),
            (&[0, 0], true),
        ] {
            let refused = replayed(times, again).expect_err("refused").to_string();
            assert!(refused.contains("arrivals: /"), "{refused}");
        }
        let cut = file(&[0, 1]);
        std::fs::write(cut.path(), [0; 13]).expect("written");
        assert!(read(&cut.path().to_string_lossy(), false).is_err());
        assert!(read("/nowhere/at/all", false).is_err());
    }
}
