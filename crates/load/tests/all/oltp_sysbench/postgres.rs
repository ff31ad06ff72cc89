//! Ours and sysbench side by side on a private PostgreSQL, each on tables the other has loaded; the server's own counters
//! say who sent and touched what. Skipped, and said so, where sysbench or the server is not installed.

use crate::support::oltp::{PROFILES, tables};
use crate::support::postgres::Server;
use crate::support::sysbench::{
    self, Bench, Counts, EVENTS, Tool, assert_alike, assert_same_cost_otherwise,
};
use crate::support::{number, sql, wait_until};
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::Profile;

/// Statements by their kinds, and the rows they gave or changed. Those that begin and end transactions are counted by
/// what comes of them: the extension loses count of them once they are prepared, as sysbench prepares them.
const STATEMENTS: &str = "SELECT split_part(query, ' ', 1), SUM(calls), SUM(rows) FROM pg_stat_statements \
    WHERE query ~ '^(DELETE|INSERT|SELECT|UPDATE) ' AND query ~ 'sbtest' GROUP BY 1";

/// What was done to rows.
const ROWS: [&str; 7] = [
    "seq_scan",
    "seq_tup_read",
    "idx_scan",
    "idx_tup_fetch",
    "n_tup_ins",
    "n_tup_upd",
    "n_tup_del",
];

/// Who asks the server what it has done.
struct ServerCounters {
    endpoint: Endpoint,
    maintenance: Endpoint,
}

impl ServerCounters {
    /// Waits until no client is left: a connection adds its own to some counters at its end.
    fn wait_for_clients(&self) {
        let left = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = 'sbtest'";
        wait_until("no client is left", || number(&self.maintenance, left) == 0);
    }

    /// The server's counters for a profile's tables.
    fn counters(&self, profile: Profile) -> Counts {
        self.wait_for_clients();
        let mut counts = Counts::new();
        let value = |cell: &Option<String>| -> i64 {
            let text = cell.as_deref().unwrap_or("0");
            text.parse().expect("a number")
        };
        let sums = ROWS.map(|name| format!("SUM({name})")).join(", ");
        let tables = (1..=tables(profile)).map(|table| format!("'sbtest{table}'"));
        let rows = format!(
            "SELECT {sums} FROM pg_stat_user_tables WHERE relname IN ({})",
            tables.collect::<Vec<_>>().join(", ")
        );
        let looked = sql(&self.endpoint, &[STATEMENTS, &rows]);
        for row in &looked[0].rows {
            let kind = row[0].clone().expect("a word");
            counts.insert(format!("{kind} statements"), value(&row[1]));
            counts.insert(format!("{kind} rows"), value(&row[2]));
        }
        for (name, sum) in ROWS.iter().zip(&looked[1].rows[0]) {
            counts.insert((*name).into(), value(sum));
        }
        self.wait_for_clients();
        for name in ["xact_commit", "xact_rollback"] {
            let query = format!("SELECT {name} FROM pg_stat_database WHERE datname = 'sbtest'");
            counts.insert(name.into(), number(&self.maintenance, &query));
        }
        counts
    }
}

fn counting(server: &Server) -> ServerCounters {
    ServerCounters {
        endpoint: server.endpoint("sbtest"),
        maintenance: server.endpoint("postgres"),
    }
}

fn server() -> Option<Server> {
    if !sysbench::is_installed() {
        return None;
    }
    let options = [
        "listen_addresses=",
        "autovacuum=off",
        "shared_preload_libraries=pg_stat_statements",
        "pg_stat_statements.max=10000",
    ];
    let options: Vec<_> = options.iter().flat_map(|option| ["-c", option]).collect();
    let server = Server::start("local all all trust\n", &options)?;
    sql(&server.endpoint("postgres"), &["CREATE DATABASE sbtest"]);
    sql(
        &server.endpoint("sbtest"),
        &[
            "CREATE EXTENSION pg_stat_statements",
            // Tables this small are at the border where the sample of ANALYZE decides about the plan.
            "ALTER DATABASE sbtest SET enable_seqscan = off",
        ],
    );
    Some(server)
}

#[test]
fn equal_events_are_equal_statements_and_equal_rows_on_each_others_tables() {
    let Some(server) = server() else { return };
    let counting = counting(&server);
    for profile in PROFILES {
        if profile == Profile::BulkInsert {
            continue; // an event of sysbench is a row there; see below
        }
        let bench = Bench::new(server.endpoint("sbtest"), profile);
        let counters = || counting.counters(profile);
        let cost = |loader, tool| {
            let mut cost = bench.cost(loader, tool, &counters);
            cost.retain(|_, count| *count != 0);
            cost
        };
        let theirs = cost(Tool::Ours, Tool::Sysbench);
        let ours = cost(Tool::Sysbench, Tool::Ours);
        eprintln!("{profile:?}: {ours:?}");
        assert!(ours.keys().eq(theirs.keys()), "{profile:?}: {theirs:?}");
        for (name, ours) in &ours {
            let is_of_keys = !name.ends_with("statements") && name != "xact_commit";
            let is_sampled = is_of_keys
                && match profile {
                    Profile::Delete => name != "idx_scan",
                    Profile::SelectRandomPoints | Profile::SelectRandomRanges => true,
                    _ => false,
                };
            if is_sampled {
                assert_alike(profile, name, *ours, theirs[name]);
            } else {
                assert_eq!(*ours, theirs[name], "{profile:?}: {name}");
            }
        }
        let sent = ours.iter().filter(|(name, _)| name.ends_with("statements"));
        let sent: i64 = sent.map(|(_, count)| count).sum();
        let events = i64::try_from(EVENTS).expect("few");
        assert!(sent >= events, "{profile:?} did something");
    }
}

#[test]
fn text_and_statements_without_a_transaction_are_equal_too() {
    let Some(server) = server() else { return };
    let counting = counting(&server);
    assert_same_cost_otherwise(&server.endpoint("sbtest"), &|| {
        counting.counters(Profile::ReadWrite)
    });
}

#[test]
fn both_make_the_same_tables_and_either_goes_on_with_the_keys() {
    let Some(server) = server() else { return };
    for profile in [Profile::ReadWrite, Profile::BulkInsert] {
        let bench = Bench::new(server.endpoint("sbtest"), profile);
        let made = |tool| {
            bench.load(tool);
            let looked = [
                "SELECT column_name, data_type, character_maximum_length, is_nullable, column_default \
                 FROM information_schema.columns WHERE table_name = 'sbtest1' ORDER BY ordinal_position",
                "SELECT indexdef FROM pg_indexes WHERE tablename = 'sbtest1' ORDER BY 1",
                "SELECT data_type, start_value, increment FROM information_schema.sequences",
            ];
            sql(&bench.endpoint, &looked)
        };
        assert_eq!(made(Tool::Ours), made(Tool::Sysbench), "{profile:?}");
    }
    let bench = Bench::new(server.endpoint("sbtest"), Profile::Insert);
    bench.load(Tool::Ours);
    bench.run(Tool::Sysbench, 5);
    let keys = "SELECT MAX(id) - COUNT(*) FROM sbtest1";
    assert_eq!(number(&bench.endpoint, keys), 0);
}
