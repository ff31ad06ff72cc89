//! sysbench beside ours, and counts of what either did.

use std::collections::BTreeMap;
use std::process::Command;

use fairtrial_protocol::oltp::{Distribution, Profile};

use super::oltp::{SPECIAL, TABLE_SIZE, tables};

/// Counts by name, of statements or rows.
pub type Counts = BTreeMap<String, i64>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool {
    Ours,
    Sysbench,
}

/// Whether sysbench can be run; said on standard error if not.
pub fn is_installed() -> bool {
    let found = Command::new("sysbench").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: sysbench is not on PATH (apt install sysbench)");
    }
    found
}

/// Keys whose ranges end inside the table, unless the profile's rows depend on which keys repeat: then all alike.
pub fn distribution(profile: Profile) -> Distribution {
    match profile {
        Profile::Delete | Profile::SelectRandomPoints | Profile::SelectRandomRanges => {
            Distribution::Uniform {}
        }
        _ => SPECIAL,
    }
}

/// Runs a profile's script with one thread.
pub fn run(profile: Profile, arguments: &[String]) {
    let random = match distribution(profile) {
        Distribution::Uniform {} => "uniform",
        _ => "special",
    };
    let name = match profile {
        Profile::BulkInsert | Profile::SelectRandomPoints | Profile::SelectRandomRanges => {
            profile.name().to_owned()
        }
        other => format!("oltp_{}", other.name()),
    };
    let mut command = Command::new("sysbench");
    command
        .arg(&name)
        .arg(format!("--rand-type={random}"))
        .args(["--rand-seed=5", "--threads=1"]);
    if profile != Profile::BulkInsert {
        command.arg(format!("--tables={}", tables(profile)));
        command.arg(format!("--table-size={TABLE_SIZE}"));
    }
    let ran = command.args(arguments).output().expect("sysbench runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && !said.contains("FATAL"),
        "{name}: {said}"
    );
}

/// What was counted between two looks.
pub fn difference(after: &Counts, before: &Counts) -> Counts {
    let one = |(name, value): (&String, &i64)| {
        let earlier = before.get(name).copied().unwrap_or_default();
        (name.clone(), value - earlier)
    };
    after.iter().map(one).collect()
}

/// Counts that hang on which keys repeat; they agree as two samples do.
#[allow(clippy::cast_precision_loss)] // counts of a test
pub fn assert_alike(profile: Profile, name: &str, ours: i64, theirs: i64) {
    let bound = 5.0 * ((ours + theirs) as f64).sqrt();
    assert!(
        ((ours - theirs) as f64).abs() <= bound && ours > 0,
        "{profile:?}: {name} is {ours} and {theirs}, further apart than {bound:.0}"
    );
}
