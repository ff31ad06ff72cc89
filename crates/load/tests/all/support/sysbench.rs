//! sysbench beside ours, and counts of what either did.

use std::collections::BTreeMap;
use std::process::Command;

use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::{Distribution, Profile, Protocol};

use super::mariadb::skips::lacks;
use super::oltp::{SPECIAL, TABLE_SIZE, drive, load, loading, parameters, tables};
use super::{number, sql};

/// Events that a comparison is about, and those of the short run.
pub const EVENTS: u64 = 200;
const FEW: u64 = 10;

/// Counts by name, of statements or rows.
pub type Counts = BTreeMap<String, i64>;

/// What a server has counted under these names so far.
pub fn counters(endpoint: &Endpoint, names: &[&str]) -> Counts {
    let mut counts = Counts::new();
    for row in &sql(endpoint, &["SHOW GLOBAL STATUS"])[0].rows {
        if let [Some(name), Some(value)] = row.as_slice()
            && names.contains(&name.as_str())
        {
            counts.insert(name.clone(), value.parse().expect("a number"));
        }
    }
    assert_eq!(counts.len(), names.len(), "{counts:?}");
    counts
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool {
    Ours,
    Sysbench,
}

/// Whether sysbench can be run; said on standard error if not.
pub fn is_installed() -> bool {
    let is_installed = Command::new("sysbench").arg("--version").output().is_ok();
    if !is_installed {
        lacks("sysbench");
    }
    is_installed
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

/// Tables of a profile, and how both tools use them.
pub struct Bench {
    pub endpoint: Endpoint,
    pub profile: Profile,
    pub text: bool,
    pub extra: Vec<&'static str>,
}

impl Bench {
    pub fn new(endpoint: Endpoint, profile: Profile) -> Self {
        Self {
            endpoint,
            profile,
            text: false,
            extra: Vec::new(),
        }
    }

    /// Runs sysbench on these tables.
    fn sysbench(&self, arguments: &[String]) {
        let mut all = place(&self.endpoint);
        if self.text {
            all.push("--db-ps-mode=disable".into());
        }
        all.extend(self.extra.iter().map(ToString::to_string));
        all.extend_from_slice(arguments);
        run(self.profile, &all);
    }

    /// Makes the tables anew.
    pub fn load(&self, tool: Tool) {
        let distribution = distribution(self.profile);
        match tool {
            Tool::Ours => {
                load(&loading(self.endpoint.clone(), self.profile, distribution));
            }
            Tool::Sysbench => {
                for table in 1..=3 {
                    let drop = format!("DROP TABLE IF EXISTS sbtest{table}");
                    sql(&self.endpoint, &[&drop]);
                }
                self.sysbench(&["prepare".into()]);
                if matches!(self.endpoint, Endpoint::Postgres { .. }) {
                    // Ours leaves this done; plans hang on it.
                    let last = match self.profile {
                        Profile::BulkInsert => 1, // as many as there are threads
                        profile => tables(profile),
                    };
                    let vacuum = |table| format!("VACUUM (FREEZE, ANALYZE) sbtest{table}");
                    let vacuums: Vec<_> = (1..=last).map(vacuum).collect();
                    let vacuums: Vec<_> = vacuums.iter().map(String::as_str).collect();
                    sql(&self.endpoint, &vacuums);
                }
            }
        }
    }

    /// Runs this many events by one user.
    pub fn run(&self, tool: Tool, events: u64) {
        match tool {
            Tool::Ours => {
                let directory = tempfile::tempdir().expect("a temporary directory");
                let endpoint = self.endpoint.clone();
                let mut request = parameters(endpoint, directory.path(), self.profile, events);
                request.distribution = distribution(self.profile);
                request.skip_transactions = self.extra.contains(&"--skip-trx=on");
                if self.profile == Profile::BulkInsert {
                    request.tables = 1;
                }
                if self.text {
                    request.protocol = Protocol::Text;
                }
                let driven = drive(&request);
                assert_eq!(driven.errors, [], "{:?}", self.profile);
                assert_eq!(driven.drawn[self.profile.name()], events);
            }
            Tool::Sysbench => {
                self.sysbench(&[
                    format!("--events={events}"),
                    "--time=0".into(),
                    "run".into(),
                ]);
            }
        }
    }

    /// What 200 events cost the server by its counters, on tables fresh from `loader`: a long run less a short one, so
    /// that what a tool does once does not count.
    pub fn cost(&self, loader: Tool, tool: Tool, counters: &impl Fn() -> Counts) -> Counts {
        let measured = |events| {
            self.load(loader);
            // Whoever opens a table first makes a server read its statistics.
            for table in 1..=tables(self.profile) {
                let rows = format!("SELECT COUNT(k) FROM sbtest{table}");
                number(&self.endpoint, &rows);
            }
            let before = counters();
            self.run(tool, events);
            difference(&counters(), &before)
        };
        let few = measured(FEW);
        difference(&measured(FEW + EVENTS), &few)
    }
}

/// Fails unless both tools cost the server the same in text, and without transactions.
pub fn assert_same_cost_otherwise(endpoint: &Endpoint, counters: &impl Fn() -> Counts) {
    for (text, extra) in [(true, vec![]), (false, vec!["--skip-trx=on"])] {
        let bench = Bench {
            text,
            extra,
            ..Bench::new(endpoint.clone(), Profile::ReadWrite)
        };
        let theirs = bench.cost(Tool::Ours, Tool::Sysbench, counters);
        let ours = bench.cost(Tool::Sysbench, Tool::Ours, counters);
        assert_eq!(ours, theirs, "text {text}, {:?}", bench.extra);
    }
}

/// Where sysbench finds a database.
fn place(endpoint: &Endpoint) -> Vec<String> {
    match endpoint {
        Endpoint::Mysql {
            socket,
            user,
            database,
            ..
        } => vec![
            format!("--mysql-socket={}", socket.as_deref().expect("a socket")),
            format!("--mysql-db={database}"),
            format!("--mysql-user={user}"),
        ],
        Endpoint::Postgres {
            socket_directory,
            user,
            database,
            ..
        } => vec![
            "--db-driver=pgsql".into(),
            format!(
                "--pgsql-host={}",
                socket_directory.as_deref().expect("a directory")
            ),
            format!("--pgsql-user={user}"),
            format!("--pgsql-db={database}"),
        ],
        Endpoint::Sqlite { .. } => panic!("sysbench drives servers"),
    }
}

/// Runs a profile's script with one thread.
fn run(profile: Profile, arguments: &[String]) {
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
