//! What the environment asks for.

use core::fmt;

/// The variable that names the kind.
pub const KIND: &str = "FAIRTRIAL_LOCK";
/// The variable that says how often to try before sleeping.
pub const SPINS: &str = "FAIRTRIAL_LOCK_SPINS";
/// The variable that names the file of counts; each process appends `.` and its number.
pub const COUNT: &str = "FAIRTRIAL_LOCK_COUNT";
/// The variable that says what becomes of a MySQL server's own fast mutex.
pub const FAST_MUTEX: &str = "FAIRTRIAL_LOCK_FASTMUTEX";

/// How often MySQL's fast mutex tries by default.
pub const FAST_SPINS: u32 = 8; // MY_PTHREAD_FASTMUTEX_SPINS
/// How often a thread looks at its queue by default.
pub const QUEUE_LOOKS: u32 = 100; // as many as glibc's adaptive mutex at most (sysdeps/nptl, max_adaptive_count)
/// More than this is no waiting before sleeping, but waiting.
pub const MOST_SPINS: u32 = 1_000_000;

/// How threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPolicy {
    /// As the program's own mutex does: the control.
    PassThrough,
    /// glibc's adaptive mutex.
    Adaptive,
    /// MySQL's fast mutex as published.
    Fast,
    /// The same with its state in locals.
    FastLocal,
    /// The same without randomness.
    FastConstant,
    /// In the order of arrival.
    Ticket,
}

/// What becomes of `my_pthread_fastmutex_lock`, where the program has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastMutexPolicy {
    /// Nothing was asked; there may be none.
    Unset,
    /// It must be there, and stays.
    AsShipped,
    /// Replaced by this library's own code of the same algorithm: what replacing alone does.
    Published,
    /// No spinning.
    Off,
    /// State in locals.
    Local,
    /// No randomness.
    Constant,
}

const KINDS: [(&str, WaitPolicy); 6] = [
    ("passthrough", WaitPolicy::PassThrough),
    ("adaptive", WaitPolicy::Adaptive),
    ("fast", WaitPolicy::Fast),
    ("fast-local", WaitPolicy::FastLocal),
    ("fast-constant", WaitPolicy::FastConstant),
    ("ticket", WaitPolicy::Ticket),
];
const FAST_MUTEXES: [(&str, FastMutexPolicy); 5] = [
    ("as-shipped", FastMutexPolicy::AsShipped),
    ("published", FastMutexPolicy::Published),
    ("off", FastMutexPolicy::Off),
    ("local", FastMutexPolicy::Local),
    ("constant", FastMutexPolicy::Constant),
];

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How threads wait.
    pub kind: WaitPolicy,
    /// Tries, or looks at the queue, before sleeping.
    pub spins: u32,
    /// Whether to count; the file's name stays in the environment.
    pub counts: bool,
    /// What becomes of MySQL's own.
    pub fast_mutex: FastMutexPolicy,
}

/// A value that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake<'a> {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: &'a str,
    /// What it must be.
    pub must: &'static str,
}

impl fmt::Display for Mistake<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}={} {}", self.variable, self.value, self.must)
    }
}

impl Config {
    /// Reads it through `variable`, which gives a variable's value; one that is empty counts as not there.
    pub fn read<'a>(
        variable: impl Fn(&'static str) -> Option<&'a str>,
    ) -> Result<Self, Mistake<'a>> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let kind = match variable(KIND) {
            None => WaitPolicy::PassThrough,
            Some(value) => named(&KINDS, value).ok_or(Mistake {
                variable: KIND,
                value,
                must: "must be passthrough, adaptive, fast, fast-local, fast-constant or ticket",
            })?,
        };
        let fast_mutex = match variable(FAST_MUTEX) {
            None => FastMutexPolicy::Unset,
            Some(value) => named(&FAST_MUTEXES, value).ok_or(Mistake {
                variable: FAST_MUTEX,
                value,
                must: "must be as-shipped, published, off, local or constant",
            })?,
        };
        let replaces = !matches!(
            fast_mutex,
            FastMutexPolicy::Unset | FastMutexPolicy::AsShipped
        );
        if replaces && kind != WaitPolicy::PassThrough {
            let value = variable(FAST_MUTEX).unwrap_or_default();
            let must = "replaces one algorithm and FAIRTRIAL_LOCK another: leave one of them out";
            return Err(Mistake {
                variable: FAST_MUTEX,
                value,
                must,
            });
        }
        let spins = match variable(SPINS) {
            None if kind == WaitPolicy::Ticket => QUEUE_LOOKS,
            None => FAST_SPINS,
            Some(value) => spins(value, kind)?,
        };
        Ok(Self {
            kind,
            spins,
            counts: variable(COUNT).is_some(),
            fast_mutex,
        })
    }
}

fn spins(value: &str, kind: WaitPolicy) -> Result<u32, Mistake<'_>> {
    let must = match kind {
        WaitPolicy::PassThrough => {
            "is for kinds that spin; this one behaves like the program's own mutexes"
        }
        WaitPolicy::Adaptive => {
            "is not for adaptive, which glibc spins for: set GLIBC_TUNABLES=glibc.pthread.mutex_spin_count=…"
        }
        _ => match value.parse() {
            Ok(number) if number <= MOST_SPINS => return Ok(number),
            _ => "must be a whole number from 0 to 1000000",
        },
    };
    Err(Mistake {
        variable: SPINS,
        value,
        must,
    })
}

fn named<T: Copy>(all: &[(&str, T)], value: &str) -> Option<T> {
    all.iter()
        .find(|(name, _)| *name == value)
        .map(|(_, each)| *each)
}

fn name_of<T: Copy + PartialEq>(all: &[(&'static str, T)], value: T) -> &'static str {
    all.iter()
        .find(|(_, each)| *each == value)
        .map_or("none", |(name, _)| name)
}

impl WaitPolicy {
    /// As the environment spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        name_of(&KINDS, self)
    }

    /// Whether `spins` means something.
    #[must_use]
    pub fn spins(self) -> bool {
        !matches!(self, Self::PassThrough | Self::Adaptive)
    }
}

impl FastMutexPolicy {
    /// As the environment spells it; `none` where nothing was asked.
    #[must_use]
    pub fn name(self) -> &'static str {
        name_of(&FAST_MUTEXES, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &'static str)]) -> Result<Config, Mistake<'static>> {
        Config::read(|name| {
            variables
                .iter()
                .find(|(each, _)| *each == name)
                .map(|(_, value)| *value)
        })
    }

    fn config(variables: &[(&str, &'static str)]) -> Config {
        read(variables).unwrap_or_else(|mistake| panic!("{mistake}"))
    }

    #[test]
    fn nothing_asked_is_the_control() {
        let quiet = Config {
            kind: WaitPolicy::PassThrough,
            spins: FAST_SPINS,
            counts: false,
            fast_mutex: FastMutexPolicy::Unset,
        };
        assert_eq!(config(&[]), quiet);
        assert_eq!(
            config(&[(KIND, ""), (COUNT, ""), (FAST_MUTEX, ""), (SPINS, "")]),
            quiet
        );
    }

    #[test]
    fn every_kind_is_read_by_its_name() {
        for (name, kind) in KINDS {
            assert_eq!(config(&[(KIND, name)]).kind, kind);
            assert_eq!(kind.name(), name);
        }
        for (name, fast_mutex) in FAST_MUTEXES {
            assert_eq!(config(&[(FAST_MUTEX, name)]).fast_mutex, fast_mutex);
            assert_eq!(fast_mutex.name(), name);
        }
    }

    #[test]
    fn spins_are_those_asked_or_those_of_the_source() {
        assert_eq!(config(&[(KIND, "fast"), (SPINS, "0")]).spins, 0);
        assert_eq!(
            config(&[(KIND, "ticket"), (SPINS, "1000000")]).spins,
            1_000_000
        );
        assert_eq!(config(&[(KIND, "fast")]).spins, 8);
        assert_eq!(config(&[(KIND, "ticket")]).spins, 100);
    }

    #[test]
    fn a_file_means_counting() {
        assert!(config(&[(COUNT, "/tmp/counts")]).counts);
    }

    #[test]
    fn what_cannot_be_meant_is_said_in_one_line() {
        let wrong: [(&[(&str, &'static str)], &str); 7] = [
            (&[(KIND, "fst")], "FAIRTRIAL_LOCK=fst must be passthrough"),
            (
                &[(KIND, "fast"), (SPINS, "-1")],
                "FAIRTRIAL_LOCK_SPINS=-1 must be a whole number",
            ),
            (
                &[(KIND, "fast"), (SPINS, "1000001")],
                "must be a whole number from 0 to 1000000",
            ),
            (&[(SPINS, "8")], "is for kinds that spin"),
            (&[(KIND, "adaptive"), (SPINS, "8")], "mutex_spin_count"),
            (
                &[(FAST_MUTEX, "on")],
                "FAIRTRIAL_LOCK_FASTMUTEX=on must be as-shipped",
            ),
            (
                &[(FAST_MUTEX, "off"), (KIND, "ticket")],
                "leave one of them out",
            ),
        ];
        for (variables, said) in wrong {
            let mistake = read(variables)
                .err()
                .map(|mistake| mistake.to_string())
                .unwrap_or_default();
            assert!(mistake.contains(said), "{variables:?}: {mistake}");
            assert!(!mistake.contains('\n'));
        }
    }
}
