//! How busy a loop was: what says whether the client was the bottleneck.

/// Of one loop over its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_field_names)] // the unit
pub struct Load {
    /// Nanoseconds spent waiting for something to happen.
    pub idle_ns: i64,
    /// Nanoseconds spent on what had happened.
    pub busy_ns: i64,
    /// Longest time between two looks for what had happened.
    pub longest_turn_ns: i64,
    /// Longest time by which a timer was late.
    pub latest_timer_ns: i64,
    left_ns: i64,
}

impl Load {
    /// The loop waited from `before_ns` to `now_ns`.
    pub fn waited(&mut self, before_ns: i64, now_ns: i64) {
        if self.left_ns != 0 {
            let turn_ns = before_ns - self.left_ns;
            self.busy_ns += turn_ns;
            self.longest_turn_ns = self.longest_turn_ns.max(turn_ns);
        }
        self.idle_ns += now_ns - before_ns;
        self.left_ns = now_ns;
    }

    /// Timers fired, the latest of them by this much.
    pub fn fired(&mut self, late_ns: i64) {
        self.latest_timer_ns = self.latest_timer_ns.max(late_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_either_idle_or_busy_and_the_longest_turn_is_kept() {
        let mut load = Load::default();
        for (before_ns, now_ns) in [(100, 150), (170, 200), (290, 300)] {
            load.waited(before_ns, now_ns);
        }
        assert_eq!(
            (load.idle_ns, load.busy_ns, load.longest_turn_ns),
            (90, 110, 90)
        );
        load.fired(7);
        load.fired(3);
        assert_eq!(load.latest_timer_ns, 7);
    }
}
