//! What a rung means to a server: purge threads where they can be changed, else a share of the batch.

use fairtrial_protocol::govern::Bounds;
use serde::{Deserialize, Serialize};

use crate::ladder::Ladder;

/// `InnoDB`'s own limit; a server that says more has no rung for each.
const MOST_THREADS: u32 = 32;

/// Values of the two variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    /// `innodb_purge_threads`.
    pub threads: u32,
    /// `innodb_purge_batch_size`.
    pub batch_size: u32,
}

/// What may be turned at one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Whether the number of threads can be set while it runs. MySQL, and MariaDB before 10.5, cannot.
    pub threads_settable: bool,
    /// The server's own values.
    pub own: Values,
    /// Threads of a full ladder.
    pub most_threads: u32,
    /// Batch of a purge that runs in full.
    pub full_batch: u32,
    /// Batch of a purge that is held.
    pub least_batch: u32,
}

impl Knobs {
    /// For a server with values of its `own`, within bounds.
    pub fn new(own: Values, threads_settable: bool, threads: Bounds, batch_size: Bounds) -> Self {
        let full_batch = batch_size.most.unwrap_or(own.batch_size);
        Self {
            threads_settable,
            own,
            most_threads: threads
                .most
                .unwrap_or(own.threads.min(MOST_THREADS))
                .max(threads.least),
            full_batch: full_batch.max(batch_size.least),
            least_batch: batch_size.least,
        }
    }

    /// The values of the rung that a ladder stands on. Nothing from outside stops purge, so a held one does the least it
    /// can: its fewest threads, its smallest batch.
    pub fn values(&self, ladder: &Ladder) -> Values {
        let threads = if self.threads_settable {
            ladder.threads()
        } else {
            self.own.threads
        };
        let batch_size = if ladder.is_held() {
            self.least_batch
        } else if self.threads_settable {
            self.full_batch
        } else {
            let share = u64::from(self.full_batch) * u64::from(ladder.threads());
            let share = share.div_ceil(u64::from(self.most_threads));
            u32::try_from(share)
                .unwrap_or(self.full_batch)
                .max(self.least_batch)
        };
        Values {
            threads,
            batch_size,
        }
    }
}

impl Values {
    /// The statements that make these of others, by the variable that each sets.
    pub fn statements_from(self, other: Self) -> Vec<(&'static str, u32)> {
        let both = [
            (THREADS, self.threads, other.threads),
            (BATCH_SIZE, self.batch_size, other.batch_size),
        ];
        both.into_iter()
            .filter(|(_, new, old)| new != old)
            .map(|(name, new, _)| (name, new))
            .collect()
    }
}

/// The variable of the number of threads.
pub const THREADS: &str = "innodb_purge_threads";
/// The variable of the batch's size.
pub const BATCH_SIZE: &str = "innodb_purge_batch_size";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::{LadderShape, Look};

    const OWN: Values = Values {
        threads: 4,
        batch_size: 300,
    };

    fn bounds(least: u32, most: Option<u32>) -> Bounds {
        Bounds { least, most }
    }

    fn walked(knobs: Knobs, least: u32) -> Vec<Values> {
        let mut ladder = Ladder::new(LadderShape {
            least,
            most: knobs.most_threads,
            low_water: 20,
            stop: 80,
            hysteresis: 2,
        });
        let mut values = vec![knobs.values(&ladder)];
        for history in 1..40 {
            let look = Look {
                age: 99,
                history,
                active: true,
                lag_limit: 0,
            };
            if ladder.look(&look).is_some() {
                values.push(knobs.values(&ladder));
            }
        }
        values
    }

    fn pairs(values: &[Values]) -> Vec<(u32, u32)> {
        values
            .iter()
            .map(|each| (each.threads, each.batch_size))
            .collect()
    }

    #[test]
    fn where_threads_can_be_set_the_batch_stays_until_purge_is_held() {
        let knobs = Knobs::new(OWN, true, bounds(1, None), bounds(1, None));
        assert_eq!(
            pairs(&walked(knobs, 1)),
            [(4, 300), (3, 300), (2, 300), (1, 300), (1, 1)]
        );
    }

    #[test]
    fn where_they_cannot_each_rung_is_a_share_of_the_batch() {
        let knobs = Knobs::new(OWN, false, bounds(1, None), bounds(1, None));
        assert_eq!(
            pairs(&walked(knobs, 1)),
            [(4, 300), (4, 225), (4, 150), (4, 75), (4, 1)]
        );
        let tiny = Knobs::new(
            Values {
                threads: 4,
                batch_size: 2,
            },
            false,
            bounds(1, None),
            bounds(1, None),
        );
        assert_eq!(
            pairs(&walked(tiny, 1)),
            [(4, 2), (4, 2), (4, 1), (4, 1), (4, 1)]
        );
    }

    #[test]
    fn bounds_hold_on_every_rung() {
        let knobs = Knobs::new(OWN, true, bounds(2, Some(6)), bounds(20, Some(500)));
        let values = walked(knobs, 2);
        assert_eq!(
            pairs(&values),
            [(6, 500), (5, 500), (4, 500), (3, 500), (2, 500), (2, 20)]
        );
        let narrow = Knobs::new(OWN, true, bounds(8, None), bounds(1000, None));
        assert_eq!(
            (narrow.most_threads, narrow.full_batch),
            (8, 1000),
            "the server's own lie below the least"
        );
    }

    #[test]
    fn a_ladder_has_no_more_rungs_than_threads_can_be_set() {
        let own = Values {
            threads: u32::MAX,
            ..OWN
        };
        let knobs = Knobs::new(own, true, bounds(1, None), bounds(1, None));
        assert_eq!(knobs.most_threads, 32);
    }

    #[test]
    fn only_what_differs_is_set() {
        assert!(OWN.statements_from(OWN).is_empty());
        let other = Values { threads: 2, ..OWN };
        assert_eq!(OWN.statements_from(other), [(THREADS, 4)]);
        let held = Values {
            threads: 1,
            batch_size: 1,
        };
        assert_eq!(held.statements_from(OWN), [(THREADS, 1), (BATCH_SIZE, 1)]);
    }
}
