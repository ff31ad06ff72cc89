//! The published algorithm (MDEV-26356), pure: from what is seen of a server to the rung that purge should stand on.
//!
//! A ladder has one rung for each number of threads, and one below for a purge that is held. Between two rungs lies a
//! mark, in percent of the largest checkpoint age: the distances between marks share the range from the low-water mark
//! to the stop. It must not know how a server is asked, nor what a rung means to one.

use fairtrial_protocol::govern::Decided;

/// What a ladder is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LadderShape {
    /// Threads of the lowest rung on which purge still runs.
    pub least: u32,
    /// Threads of the highest rung, where it starts.
    pub most: u32,
    /// Age up to which all threads work, percent.
    pub low_water: u32,
    /// Age from which purge is held, percent.
    pub stop: u32,
    /// Points below `stop` at which it is let go again; 0 as published.
    pub hysteresis: u32,
}

/// What is seen of a server at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Checkpoint age, percent of the largest.
    pub age: u64,
    /// Undo logs not yet purged.
    pub history: u64,
    /// Whether anything happened since the look before: an idle server needs no threads.
    pub active: bool,
    /// History length from which the server delays its users (`innodb_max_purge_lag`); 0 for none.
    pub lag_limit: u64,
}

/// A decision, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderStep {
    /// Which way.
    pub decided: Decided,
    /// Why, in words.
    pub reason: String,
}

/// A ladder, and where on it purge stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    shape: LadderShape,
    /// By number of threads: the points that using one thread less costs; the first entry is nobody's.
    series: Vec<u32>,
    threads: u32,
    held: bool,
    history: u64,
}

impl Ladder {
    /// A ladder on whose highest rung purge stands, before the first look.
    pub fn new(shape: LadderShape) -> Self {
        Self {
            shape,
            series: series(shape.most, shape.stop.saturating_sub(shape.low_water)),
            threads: shape.most,
            held: false,
            history: 0,
        }
    }

    /// Threads of the rung that it stands on.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Whether purge is held.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Low and high water at a number of threads: below the one it may use one more, from the other on one less.
    pub fn marks(&self, threads: u32) -> (u32, u32) {
        let above: u32 = self.series.iter().skip(threads as usize + 1).sum::<u32>();
        let low = self.shape.low_water + above;
        (low, low + self.series[threads as usize])
    }

    /// Looks, and steps at most once.
    pub fn look(&mut self, look: &Look) -> Option<LadderStep> {
        let step = self.decide(look);
        let decided = step.as_ref().map(|step| step.decided);
        match decided {
            Some(Decided::More) => self.threads += 1,
            Some(Decided::Fewer) => self.threads -= 1,
            Some(Decided::Hold) => self.held = true,
            Some(Decided::Release) => self.held = false,
            _ => {}
        }
        // The history to compare with is that of the last look at which purge ran: nothing is purged while it is held.
        if !self.held && decided != Some(Decided::Release) {
            self.history = look.history;
        }
        step
    }

    fn decide(&self, look: &Look) -> Option<LadderStep> {
        let LadderShape {
            least, most, stop, ..
        } = self.shape;
        let (low, high) = self.marks(self.threads);
        let age = look.age;
        if self.held {
            return self.release(look);
        }
        let (decided, reason) = if look.history > self.history {
            if self.threads < most && age < u64::from(low) {
                (Decided::More, format!("age {age} % is below {low} %"))
            } else if self.threads > least && age >= u64::from(high) {
                (Decided::Fewer, format!("age {age} % has reached {high} %"))
            } else if self.threads == least && age >= u64::from(stop) {
                (Decided::Hold, format!("age {age} % has reached {stop} %"))
            } else {
                return None;
            }
        } else if self.threads < most && look.lag_limit > 0 && self.history > look.lag_limit {
            let (history, limit) = (self.history, look.lag_limit);
            let reason = format!("history {history} is beyond innodb_max_purge_lag {limit}");
            (Decided::More, reason)
        } else if self.threads > least && !look.active {
            (Decided::Fewer, "nothing is written".to_owned())
        } else {
            return None;
        };
        Some(LadderStep { decided, reason })
    }

    fn release(&self, look: &Look) -> Option<LadderStep> {
        let enough = self.shape.stop.saturating_sub(self.shape.hysteresis);
        let reason = if look.history <= self.history {
            format!("the history has not grown beyond {}", self.history)
        } else if look.age < u64::from(enough) {
            format!("age {} % is below {enough} %", look.age)
        } else {
            return None;
        };
        Some(LadderStep {
            decided: Decided::Release,
            reason,
        })
    }
}

/// Shares `points` between `threads`. Where it comes out whole, the more threads are in use the less it takes to give one
/// up: four share 60 points as 24, 18, 12, 6, so that three are left at 26 %, two at 38 %, one at 56 %, and none at 80 %.
/// Else equally, with what is left over one by one from the first thread on.
fn series(threads: u32, points: u32) -> Vec<u32> {
    let parts = threads * (threads + 1) / 2;
    let mut series = vec![0];
    if points.is_multiple_of(parts) {
        series.extend((1..=threads).map(|thread| (threads + 1 - thread) * (points / parts)));
    } else {
        let (each, left) = (points / threads, points % threads);
        series.extend((1..=threads).map(|thread| each + u32::from(thread <= left)));
    }
    series
}

#[cfg(test)]
mod tests;
