//! The loop: a look at every tick, at most one step, and what that asks for set, until it is told to end.
//!
//! It never harms a server: one that hangs is waited for on one connection and asked nothing meanwhile, one that is gone
//! is looked for ever more rarely, one that was started anew is met like a stranger, one that refuses is left alone for
//! a while.

use std::time::Duration;

use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::govern::{Decided, Decision, GovernPurge, Governed};
use fairtrial_sample::{Ticker, Wake};

use crate::error::GovernError;
use crate::log::{GovernorCounts, Log, Times, cpu_ns, say};
use crate::originals::{self, OriginalsFile, RESTORE_LIMIT, RestoreOutcome};
use crate::pause::Pause;
use crate::server::{GovernedServer, ServerStatus, Trouble};
use crate::subject::Subject;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// A governor at work.
pub struct Governor<'a> {
    parameters: &'a GovernPurge,
    server: GovernedServer,
    subject: Subject,
    kept: OriginalsFile,
    log: Log,
    counts: GovernorCounts,
    times: Times,
    /// Whether the server is the one that was met last, over the same connection.
    met: bool,
    /// Whether the last look failed: said once.
    troubled: bool,
    reconnecting: Pause,
    refusal: Pause,
}

impl<'a> Governor<'a> {
    /// Meets the server, keeps its values for whoever must restore them, and finds out whether it lets itself be told.
    pub fn start(parameters: &'a GovernPurge) -> Result<Self, GovernError> {
        let limit = Duration::from_millis(parameters.answer_limit_ms.into());
        let mut server = GovernedServer::new(parameters.endpoint.clone(), RESTORE_LIMIT);
        let facts = server.meet().map_err(|trouble| match trouble {
            Trouble::Refused(reason) => GovernError::Unfit { reason },
            other => unreachable(&other),
        })??;
        let subject = Subject::new(parameters, facts);
        let most = subject.knobs.most_threads;
        let path = parameters.originals.as_deref();
        let directory = parameters.output_directory.as_deref();
        let mut governor = Self {
            parameters,
            server,
            kept: OriginalsFile::new(path.filter(|_| !parameters.dry_run)),
            log: Log::create(directory, most, parameters.period_ms)?,
            times: Times::new(most, monotonic_ns()),
            subject,
            counts: GovernorCounts::default(),
            met: true,
            troubled: false,
            reconnecting: Pause::new(),
            refusal: Pause::new(),
        };
        governor.keep()?;
        governor.try_setting()?;
        governor.server.wait_for(limit); // a look is not worth waiting for; a beginning is
        Ok(governor)
    }

    fn keep(&self) -> Result<(), GovernError> {
        self.kept.write(&self.subject.originals(self.parameters))
    }

    /// Sets what is set already: a server that refuses does so now, and not under load.
    fn try_setting(&mut self) -> Result<(), GovernError> {
        if self.parameters.dry_run {
            return Ok(());
        }
        for (variable, value) in self.subject.no_changes() {
            if let Err(trouble) = self.server.set(variable, value) {
                self.kept.remove()?; // nothing was changed
                return Err(match trouble {
                    Trouble::Refused(message) => GovernError::Refused { variable, message },
                    other => unreachable(&other),
                });
            }
        }
        Ok(())
    }

    fn announce(&mut self) -> Result<(), GovernError> {
        let facts = &self.subject.facts;
        let by = if facts.threads_settable {
            "threads, and the batch's size where purge is held"
        } else {
            "the batch's size, as this server sets its threads at its start only"
        };
        let reason = format!("{}, by {by}{}", facts.version, self.bounded());
        let started = Decision {
            threads: Some(facts.values.threads),
            batch_size: Some(facts.values.batch_size),
            ..decision_of(Decided::Started, reason)
        };
        self.log.decision(&started)?;
        if self.parameters.output_directory.is_some() {
            say(&started)?; // whoever started it waits for this
        }
        Ok(())
    }

    /// What the first look sets because the server's own values lie outside the bounds; empty if they do not.
    fn bounded(&self) -> String {
        let target = self.subject.target();
        if target == self.subject.facts.values {
            return String::new();
        }
        format!(
            "; within the bounds it begins with {} threads and batches of {}",
            target.threads, target.batch_size
        )
    }

    /// Governs until SIGTERM, SIGINT or the end of its time, then restores; after an error, too.
    pub fn govern(mut self) -> Result<Governed, GovernError> {
        let ended = self.look_until_told();
        let restored = self.restore();
        self.log.finish()?;
        ended?;
        let restored = restored?;
        let counts = self.counts;
        Ok(Governed {
            looks: counts.looks,
            missed_looks: counts.missed_looks,
            decisions: counts.decisions,
            sets: counts.sets,
            refused: counts.refused,
            cpu_ns: cpu_ns(),
            restored,
        })
    }

    fn look_until_told(&mut self) -> Result<(), GovernError> {
        let began_ns = monotonic_ns();
        let mut ticker = Ticker::start(self.parameters.period_ms)?;
        self.announce()?; // whoever reads it may end this at once, which only a ticker hears
        self.tick(began_ns)?;
        while let Wake::Tick { missed } = ticker.wait()? {
            self.counts.missed_looks += missed;
            let now_ns = monotonic_ns();
            self.tick(now_ns)?;
            #[allow(clippy::cast_precision_loss)] // less than a hundred days
            let passed_s = (now_ns - began_ns) as f64 / NANOSECONDS_PER_SECOND;
            if self
                .parameters
                .duration_s
                .is_some_and(|limit_s| passed_s >= limit_s)
            {
                break;
            }
        }
        Ok(())
    }

    /// Looks once; an error only where nothing can be written any more.
    fn tick(&mut self, now_ns: i64) -> Result<(), GovernError> {
        if !self.met && self.reconnecting.holds(now_ns) {
            self.counts.missed_looks += 1;
            return Ok(());
        }
        match self.status()? {
            Ok(status) => {
                self.counts.looks += 1;
                self.troubled = false;
                let (threads, held) =
                    (self.subject.ladder.threads(), self.subject.ladder.is_held());
                self.times.pass(now_ns, threads, held);
                let followed = self.follow(now_ns, &status)?;
                let values = self.subject.in_effect.unwrap_or(self.subject.target());
                self.log
                    .look(now_ns, &self.counts, &status, values, &self.times)?;
                followed.map_or(Ok(()), |trouble| self.missed(now_ns, &trouble))
            }
            Err(trouble) => self.missed(now_ns, &trouble),
        }
    }

    /// What the server says; one that was lost is met first.
    fn status(&mut self) -> Result<Result<ServerStatus, Trouble>, GovernError> {
        if !self.met {
            match self.server.meet() {
                Ok(Ok(facts)) => self.meet_again(facts)?,
                Ok(Err(error)) => return Ok(Err(Trouble::Lost(error.to_string()))),
                Err(trouble) => return Ok(Err(trouble)),
            }
        }
        Ok(self.server.look(&self.subject.facts))
    }

    fn meet_again(&mut self, facts: crate::server::ServerFacts) -> Result<(), GovernError> {
        self.met = true;
        self.reconnecting.end();
        let values = facts.values;
        let (decided, reason) = if self.is_same(&facts) {
            self.subject.in_effect = Some(values);
            (Decided::Back, "it is the same server".to_owned())
        } else {
            self.subject = Subject::new(self.parameters, facts);
            self.keep()?;
            let reason = "it was restarted: its own values are kept now";
            (Decided::Restarted, format!("{reason}{}", self.bounded()))
        };
        self.log.decision(&Decision {
            threads: Some(values.threads),
            batch_size: Some(values.batch_size),
            ..decision_of(decided, reason)
        })
    }

    /// Whether a server that answers again is the one that was governed. One that has what was set last, which is not what
    /// it had, is: another start would have its own.
    fn is_same(&self, facts: &crate::server::ServerFacts) -> bool {
        let before = &self.subject.facts;
        facts.incarnation.continues(&before.incarnation)
            || (facts.incarnation.connection >= before.incarnation.connection
                && facts.values != before.values
                && self.subject.in_effect == Some(facts.values))
    }

    /// Steps, once what was asked for last is in effect, and sets what the step asks for.
    fn follow(
        &mut self,
        now_ns: i64,
        status: &ServerStatus,
    ) -> Result<Option<Trouble>, GovernError> {
        if let trouble @ Some(_) = self.set(now_ns, status)? {
            return Ok(trouble);
        }
        if self.subject.in_effect != Some(self.subject.target()) {
            return Ok(None); // refused not long ago
        }
        let Some(step) = self.subject.step(status) else {
            return Ok(None);
        };
        self.counts.decisions += 1;
        let target = self.subject.target();
        self.log.decision(&Decision {
            threads: Some(target.threads),
            batch_size: Some(target.batch_size),
            ..decision_at(step.decided, step.reason, status)
        })?;
        self.set(now_ns, status)
    }

    /// Sets what is wanted and not in effect. What is left over, the next tick sets.
    fn set(&mut self, now_ns: i64, status: &ServerStatus) -> Result<Option<Trouble>, GovernError> {
        let target = self.subject.target();
        if self.parameters.dry_run {
            self.subject.in_effect = Some(target);
        }
        if self.subject.in_effect == Some(target) || self.refusal.holds(now_ns) {
            return Ok(None);
        }
        let changes = self.subject.changes();
        self.subject.in_effect = None; // until all of it is answered
        for (variable, value) in changes {
            match self.server.set(variable, value) {
                Ok(()) => self.counts.sets += 1,
                Err(Trouble::Refused(message)) => {
                    self.counts.refused += 1;
                    self.refusal.lengthen(now_ns);
                    let reason = format!("SET GLOBAL {variable} = {value}: {message}");
                    self.log
                        .decision(&decision_at(Decided::Refused, reason, status))?;
                    return Ok(None);
                }
                Err(trouble) => return Ok(Some(trouble)),
            }
        }
        self.refusal.end();
        self.subject.in_effect = Some(target);
        Ok(None)
    }

    /// A look that failed, or a change that was not answered. A refused look is one of a server that went wrong.
    fn missed(&mut self, now_ns: i64, trouble: &Trouble) -> Result<(), GovernError> {
        self.counts.missed_looks += 1;
        let decided = if matches!(trouble, Trouble::Late(_)) {
            Decided::Late
        } else {
            self.met = false;
            self.server.forget();
            self.reconnecting.lengthen(now_ns);
            Decided::Lost
        };
        if self.troubled {
            return Ok(());
        }
        self.troubled = true;
        self.log
            .decision(&decision_of(decided, trouble.to_string()))
    }

    /// Gives the server its values back. One that hangs may: the originals stay on disk then, for whoever comes next.
    fn restore(&mut self) -> Result<bool, GovernError> {
        if self.parameters.dry_run {
            return Ok(true);
        }
        self.server.wait_for(RESTORE_LIMIT);
        let originals = self.subject.originals(self.parameters);
        let restored = originals::restore(&mut self.server, &originals, self.subject.in_effect);
        let (decided, reason) = match &restored {
            Ok(RestoreOutcome::Set(variables)) if variables.is_empty() => {
                (Decided::Restored, "nothing was left to set".to_owned())
            }
            Ok(RestoreOutcome::Set(variables)) => (Decided::Restored, variables.join(", ")),
            Ok(RestoreOutcome::Gone) => {
                let reason = "the server that was governed is gone, and what was set with it";
                (Decided::Restored, reason.to_owned())
            }
            Ok(RestoreOutcome::Foreign(values)) => {
                let reason = format!("other values were set in the meantime and stay: {values:?}");
                (Decided::NotRestored, reason)
            }
            Err(error) => (Decided::NotRestored, error.to_string()),
        };
        let decision = Decision {
            threads: Some(originals.values.threads),
            batch_size: Some(originals.values.batch_size),
            ..decision_of(decided, reason)
        };
        let logged = self.log.decision(&decision);
        restored?;
        self.kept.remove()?;
        logged?;
        Ok(decided == Decided::Restored)
    }
}

fn unreachable(trouble: &Trouble) -> GovernError {
    GovernError::Unreachable {
        reason: trouble.to_string(),
    }
}

fn decision_of(decision: Decided, reason: String) -> Decision {
    Decision {
        time_ns: monotonic_ns(),
        decision,
        reason,
        checkpoint_age_percent: None,
        history_list_length: None,
        threads: None,
        batch_size: None,
    }
}

fn decision_at(decision: Decided, reason: String, status: &ServerStatus) -> Decision {
    Decision {
        checkpoint_age_percent: Some(status.age_percent()),
        history_list_length: Some(status.history),
        ..decision_of(decision, reason)
    }
}
