//! How long to leave a server alone after a failure: ever longer, up to a limit.

/// The first pause, nanoseconds: a server's start takes longer.
const FIRST_NS: i64 = 100_000_000;
/// The longest: a server that is back is seen soon enough.
const LONGEST_NS: i64 = 5_000_000_000;

/// Time that must pass before something is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    next_ns: i64,
    until_ns: Option<i64>,
}

impl Pause {
    /// Nothing has failed yet.
    pub fn new() -> Self {
        Self {
            next_ns: FIRST_NS,
            until_ns: None,
        }
    }

    /// Whether it is too early.
    pub fn holds(&self, now_ns: i64) -> bool {
        self.until_ns.is_some_and(|until_ns| now_ns < until_ns)
    }

    /// It failed again.
    pub fn lengthen(&mut self, now_ns: i64) {
        self.until_ns = Some(now_ns + self.next_ns);
        self.next_ns = (2 * self.next_ns).min(LONGEST_NS);
    }

    /// It went well.
    pub fn end(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_begin_anew_once_it_went_well() {
        let mut pause = Pause::new();
        assert!(!pause.holds(0));
        let mut now_ns = 0;
        let mut lengths_ms = vec![];
        for _ in 0..8 {
            pause.lengthen(now_ns);
            let began_ns = now_ns;
            while pause.holds(now_ns) {
                now_ns += 100_000_000;
            }
            lengths_ms.push((now_ns - began_ns) / 1_000_000);
        }
        assert_eq!(lengths_ms, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        pause.end();
        assert_eq!(pause, Pause::new());
    }
}
