//! How long a session waits for what may never come. The controller says, so that both sides of a stream agree.

use std::time::Duration;

use anyhow::{Context as _, bail};
use fairtrial_protocol::SILENCE_S;

/// `name=seconds`, with commas between them; what is not named keeps its default.
pub const VARIABLE: &str = "FAIRTRIAL_LIMITS";

/// The limits of one session; `src/fairtrial/wire/limits.py` has the same defaults, and a test compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Without a word from the controller; then the session ends.
    pub silence: Duration,
    /// Between SIGTERM and SIGKILL when a session ends.
    pub grace: Duration,
    /// For killed processes to be gone: what is still there sits in an uninterruptible call, and no waiting helps.
    pub hang: Duration,
    /// For the lock: a killed controller's agent needs a moment to notice.
    pub lock: Duration,
    /// For the lock of a session that is ending: it stops its processes and undoes its settings within this.
    pub lock_ending: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(SILENCE_S),
            grace: Duration::from_secs(5),
            hang: Duration::from_secs(10),
            lock: Duration::from_secs(1),
            lock_ending: Duration::from_mins(1),
        }
    }
}

impl Limits {
    /// The limits that the environment names.
    pub fn from_environment() -> anyhow::Result<Self> {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Self::parse(&text).with_context(|| format!("${VARIABLE} is `{text}`"))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut limits = Self::default();
        for entry in text.split(',').filter(|entry| !entry.trim().is_empty()) {
            let (name, seconds) = entry
                .trim()
                .split_once('=')
                .with_context(|| format!("`{entry}` is not `name=seconds`"))?;
            let limit = match name {
                "silence_s" => &mut limits.silence,
                "grace_s" => &mut limits.grace,
                "hang_s" => &mut limits.hang,
                "lock_s" => &mut limits.lock,
                "lock_ending_s" => &mut limits.lock_ending,
                _ => bail!("`{name}` is not a limit of the agent"),
            };
            let seconds = seconds.parse().context("expected a number of seconds")?;
            *limit = Duration::try_from_secs_f64(seconds)?;
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_differs_from_the_defaults() {
        let limits = Limits::parse("silence_s=2.5, grace_s=1e+09,").expect("right");
        assert_eq!(limits.silence, Duration::from_millis(2500));
        assert_eq!(limits.grace, Duration::from_secs(1_000_000_000));
        let named = Limits {
            silence: Limits::default().silence,
            grace: Limits::default().grace,
            ..limits
        };
        assert_eq!(named, Limits::default());
        assert_eq!(Limits::parse("").expect("none named"), Limits::default());
    }

    #[test]
    fn each_name_sets_its_own_limit() {
        let limits = Limits::parse("silence_s=1,grace_s=2,hang_s=3,lock_s=4,lock_ending_s=5")
            .expect("right");
        let seconds = [
            limits.silence,
            limits.grace,
            limits.hang,
            limits.lock,
            limits.lock_ending,
        ];
        assert_eq!(seconds.map(|limit| limit.as_secs()), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for wrong in [
            "silence_s",
            "silence_s=",
            "silence_s=-1",
            "silence_s=nan",
            "silense_s=1",
        ] {
            assert!(Limits::parse(wrong).is_err(), "{wrong}");
        }
    }
}
