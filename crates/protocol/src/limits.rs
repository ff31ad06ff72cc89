//! How long a session or a drive waits for what may never come. The controller says, so that both sides of a stream
//! agree.

use std::time::Duration;

use crate::SILENCE_S;

/// `name=seconds`, with commas between them; what is not named keeps its default.
pub const VARIABLE: &str = "FAIRTRIAL_LIMITS";

/// The limits at a place; `src/fairtrial/wire/limits.py` has the same defaults, and a test compares them.
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
    /// For all users of a drive to connect: a server that lets them wait longer is not going to serve them.
    pub connected: Duration,
    /// For any transaction to end, in a drive that waits for a number of them.
    pub stall: Duration,
    /// For users to finish when the window is over: longer than the 50 s that a MariaDB lock wait takes by default.
    pub finish: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(SILENCE_S),
            grace: Duration::from_secs(5),
            hang: Duration::from_secs(10),
            lock: Duration::from_secs(1),
            lock_ending: Duration::from_mins(1),
            connected: Duration::from_mins(1),
            stall: Duration::from_secs(30),
            finish: Duration::from_mins(1),
        }
    }
}

impl Limits {
    /// The limits that the environment names; an error says what is wrong with which entry.
    pub fn from_environment() -> Result<Self, String> {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Self::parse(&text).map_err(|problem| format!("${VARIABLE} is `{text}`: {problem}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for entry in text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let Some((name, seconds)) = entry.split_once('=') else {
                return Err(format!("`{entry}` is not `name=seconds`"));
            };
            let limit = match name {
                "silence_s" => &mut limits.silence,
                "grace_s" => &mut limits.grace,
                "hang_s" => &mut limits.hang,
                "lock_s" => &mut limits.lock,
                "lock_ending_s" => &mut limits.lock_ending,
                "connected_s" => &mut limits.connected,
                "stall_s" => &mut limits.stall,
                "finish_s" => &mut limits.finish,
                _ => return Err(format!("`{name}` is not a limit of the agent")),
            };
            *limit = seconds
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| format!("`{entry}` gives no number of seconds"))?;
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
        let text = "silence_s=1,grace_s=2,hang_s=3,lock_s=4,lock_ending_s=5,connected_s=6,stall_s=7,finish_s=8";
        let limits = Limits::parse(text).expect("right");
        let seconds = [
            limits.silence,
            limits.grace,
            limits.hang,
            limits.lock,
            limits.lock_ending,
            limits.connected,
            limits.stall,
            limits.finish,
        ];
        let seconds = seconds.map(|limit| limit.as_secs());
        assert_eq!(seconds, [1, 2, 3, 4, 5, 6, 7, 8]);
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
