//! How far a load is, how fast it goes and how long it will take.

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::Progress;

/// A load under way. Work is counted in the units that progress tells.
#[derive(Debug)]
pub struct Pace {
    began_ns: i64,
    total: f64,
    resumed: f64,
    done: f64,
    rows_resumed: u64,
    rows: u64,
}

impl Pace {
    /// A load that begins now, with this much work and this many rows in from before.
    pub fn begin(total: f64, resumed: f64, rows_resumed: u64) -> Self {
        Self {
            began_ns: monotonic_ns(),
            total,
            resumed,
            done: resumed,
            rows_resumed,
            rows: rows_resumed,
        }
    }

    /// Work and rows that are in.
    pub fn add(&mut self, work: f64, rows: u64) {
        self.done += work;
        self.rows += rows;
    }

    /// Work done, that of before included.
    pub fn done(&self) -> f64 {
        self.done
    }

    /// What to say of it now.
    pub fn progress(&self) -> Progress {
        self.progress_at(monotonic_ns())
    }

    #[allow(clippy::cast_precision_loss)] // rows of a load and its nanoseconds
    fn progress_at(&self, now_ns: i64) -> Progress {
        let seconds = ((now_ns - self.began_ns).max(1)) as f64 / 1e9;
        let speed = (self.done - self.resumed) / seconds;
        Progress::Loading {
            done: self.done,
            total: self.total,
            rows: self.rows,
            rows_per_s: (self.rows - self.rows_resumed) as f64 / seconds,
            left_s: (speed > 0.0).then(|| (self.total - self.done).max(0.0) / speed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    #[test]
    fn what_was_in_before_counts_as_done_but_not_as_speed() {
        let mut pace = Pace::begin(10.0, 4.0, 4_000);
        pace.add(2.0, 2_000);
        let expected = Progress::Loading {
            done: 6.0,
            total: 10.0,
            rows: 6_000,
            rows_per_s: 500.0,
            left_s: Some(8.0),
        };
        assert_eq!(pace.progress_at(pace.began_ns + 4 * SECOND_NS), expected);
    }

    #[test]
    fn without_work_done_nobody_knows_what_is_left() {
        let pace = Pace::begin(10.0, 4.0, 4_000);
        let Progress::Loading { left_s, .. } = pace.progress_at(pace.began_ns) else {
            panic!("it loads")
        };
        assert_eq!(left_s, None);
    }
}
