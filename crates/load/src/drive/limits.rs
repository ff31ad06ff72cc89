//! How long a drive waits for what may never come. The environment may say otherwise, for tests.

use std::time::Duration;

/// Limits of one drive.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A server that lets users wait longer than this to connect is not going to serve them.
    pub connect: Duration,
    /// A drive that waits for a number of transactions ends when none ended for this long.
    pub stall: Duration,
    /// Users that have not finished by then are abandoned: longer than the 50 s a MariaDB lock wait takes by default.
    pub finish: Duration,
}

impl Limits {
    /// What the variables of this process say, else the defaults.
    pub fn from_environment() -> Self {
        Self::given_by(|name| std::env::var(name).ok())
    }

    fn given_by(variable: impl Fn(&str) -> Option<String>) -> Self {
        let limit = |name, default_s| {
            let seconds = variable(name).and_then(|text| text.parse().ok());
            seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .unwrap_or(Duration::from_secs(default_s))
        };
        Self {
            connect: limit("FAIRTRIAL_CONNECT_LIMIT_S", 60),
            stall: limit("FAIRTRIAL_STALL_LIMIT_S", 30),
            finish: limit("FAIRTRIAL_FINISH_LIMIT_S", 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_or_no_time_is_the_default() {
        let limits = Limits::given_by(|name| match name {
            "FAIRTRIAL_FINISH_LIMIT_S" => Some("0.5".into()),
            "FAIRTRIAL_STALL_LIMIT_S" => Some("-1".into()),
            _ => None,
        });
        assert_eq!(limits.finish, Duration::from_millis(500));
        assert_eq!(limits.stall, Duration::from_secs(30));
        assert_eq!(limits.connect, Duration::from_mins(1));
    }
}
