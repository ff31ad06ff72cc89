//! One start of a server, and what is done to it.

use fairtrial_protocol::govern::GovernPurge;

use crate::knobs::{Knobs, THREADS, Values};
use crate::ladder::{Ladder, LadderShape, LadderStep, Look};
use crate::originals::Originals;
use crate::server::{ServerFacts, ServerStatus};

/// No value that a variable has: what differs from it is everything.
const UNKNOWN: Values = Values {
    threads: 0,
    batch_size: 0,
};

/// One start of a server, and what is done to it.
pub struct Subject {
    /// What it is.
    pub facts: ServerFacts,
    /// What can be turned.
    pub knobs: Knobs,
    /// Where its purge stands.
    pub ladder: Ladder,
    /// What is in effect; `None` where a change was not answered.
    pub in_effect: Option<Values>,
    lsn: Option<u64>,
}

impl Subject {
    /// A server that was just met.
    pub fn new(parameters: &GovernPurge, facts: ServerFacts) -> Self {
        let GovernPurge {
            threads,
            batch_size,
            ..
        } = *parameters;
        let knobs = Knobs::new(facts.values, facts.threads_settable, threads, batch_size);
        let ladder = Ladder::new(LadderShape {
            least: threads.least,
            most: knobs.most_threads,
            low_water: parameters.low_water_percent,
            stop: parameters.stop_percent,
            hysteresis: parameters.hysteresis_percent,
        });
        Self {
            in_effect: Some(facts.values),
            facts,
            knobs,
            ladder,
            lsn: None,
        }
    }

    /// What it had before.
    pub fn originals(&self, parameters: &GovernPurge) -> Originals {
        Originals {
            endpoint: parameters.endpoint.clone(),
            incarnation: self.facts.incarnation,
            values: self.facts.values,
        }
    }

    /// What its rung asks for.
    pub fn target(&self) -> Values {
        self.knobs.values(&self.ladder)
    }

    /// What must be set for what is wanted.
    pub fn changes(&self) -> Vec<(&'static str, u32)> {
        self.settable(self.target(), self.in_effect.unwrap_or(UNKNOWN))
    }

    /// Everything that can be set, to what it is already.
    pub fn no_changes(&self) -> Vec<(&'static str, u32)> {
        self.settable(self.facts.values, UNKNOWN)
    }

    fn settable(&self, target: Values, from: Values) -> Vec<(&'static str, u32)> {
        let mut changes = target.statements_from(from);
        changes.retain(|(variable, _)| self.knobs.threads_settable || *variable != THREADS);
        changes
    }

    /// Goes by what was seen.
    pub fn step(&mut self, status: &ServerStatus) -> Option<LadderStep> {
        let active = self.lsn.is_none() || self.lsn != status.lsn;
        self.lsn = status.lsn;
        self.ladder.look(&Look {
            age: status.age_percent(),
            history: status.history,
            active,
            lag_limit: self.facts.lag_limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use fairtrial_protocol::govern::Decided;
    use fairtrial_sample::server::queries::CounterQueries;
    use serde_json::json;

    use super::*;
    use crate::server::Incarnation;

    fn subject() -> Subject {
        let parameters = json!({
            "endpoint": {"kind": "mysql", "user": "root", "database": "mysql"},
            "period_ms": 10,
            "answer_limit_ms": 100,
            "threads": {"least": 1},
            "batch_size": {"least": 1},
            "low_water_percent": 20,
            "stop_percent": 80,
            "hysteresis_percent": 0,
        });
        let facts = ServerFacts {
            version: "10.11".into(),
            incarnation: Incarnation {
                connection: 1,
                began_s: 0,
            },
            values: Values {
                threads: 4,
                batch_size: 300,
            },
            threads_settable: true,
            lag_limit: 0,
            capacity_bytes: None,
            queries: CounterQueries {
                statements: Vec::new(),
                columns: std::collections::BTreeMap::new(),
                in_rows: false,
            },
        };
        Subject::new(
            &serde_json::from_value(parameters).expect("parameters"),
            facts,
        )
    }

    #[test]
    fn only_a_server_whose_log_stands_still_is_taken_for_idle() {
        for (lsns, idle) in [
            ([Some(7), Some(7)], true),
            ([Some(7), Some(8)], false),
            ([None, None], false),
        ] {
            let mut subject = subject();
            let steps = lsns.map(|lsn| {
                subject.step(&ServerStatus {
                    history: 0,
                    age_bytes: 0,
                    most_bytes: 100,
                    lsn,
                    answer_ns: 0,
                })
            });
            let decided = steps.map(|step| step.map(|step| step.decided));
            assert_eq!(decided, [None, idle.then_some(Decided::Fewer)], "{lsns:?}");
        }
    }
}
