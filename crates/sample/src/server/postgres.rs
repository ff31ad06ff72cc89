//! PostgreSQL: its statistics views of the database sampled, of the whole server, and wait events by type.

use std::collections::BTreeMap;

use super::counters::Counter;
use super::queries::CounterQueries;

/// What an expression of the list may name, and how it is read. Each gives one row.
const VIEWS: [(&str, &str); 7] = [
    (
        "pg_stat_database",
        "(SELECT * FROM pg_stat_database WHERE datname = current_database()) AS pg_stat_database",
    ),
    ("pg_stat_bgwriter", "pg_stat_bgwriter"),
    ("pg_stat_checkpointer", "pg_stat_checkpointer"),
    ("pg_stat_wal", "pg_stat_wal"),
    (
        "io_of_wal",
        "(SELECT sum(writes) AS writes, sum(fsyncs) AS fsyncs FROM pg_stat_io \
         WHERE object = 'wal' AND context = 'normal') AS io_of_wal",
    ),
    (
        "io_of_backends",
        "(SELECT sum(writes) AS writes FROM pg_stat_io \
         WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')) \
         AS io_of_backends",
    ),
    (
        "activity",
        "(SELECT count(*) FILTER (WHERE state = 'active') AS active, \
         count(*) FILTER (WHERE backend_type = 'autovacuum worker') AS autovacuum_workers, \
         count(*) FILTER (WHERE wait_event_type = 'Activity') AS waiting_activity, \
         count(*) FILTER (WHERE wait_event_type = 'BufferPin') AS waiting_bufferpin, \
         count(*) FILTER (WHERE wait_event_type = 'Client') AS waiting_client, \
         count(*) FILTER (WHERE wait_event_type = 'Extension') AS waiting_extension, \
         count(*) FILTER (WHERE wait_event_type = 'IO') AS waiting_io, \
         count(*) FILTER (WHERE wait_event_type = 'IPC') AS waiting_ipc, \
         count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting_lock, \
         count(*) FILTER (WHERE wait_event_type = 'LWLock') AS waiting_lwlock, \
         count(*) FILTER (WHERE wait_event_type = 'Timeout') AS waiting_timeout \
         FROM pg_stat_activity) AS activity",
    ),
];

/// Our own views' columns: of this one they exist for who may see what others do, who would count none of them
/// otherwise; of those over `pg_stat_io` where it has them.
const ACTIVITY: &str = "activity.";
const MAY_SEE_ALL: &str = "pg_read_all_stats";
const IO: [&str; 2] = ["io_of_wal.", "io_of_backends."];

/// Says which columns the views have in this version, and whether their reader may see what others do.
pub const PROBE: &str = "SELECT table_name || '.' || column_name FROM information_schema.columns \
    WHERE table_name IN ('pg_stat_database', 'pg_stat_bgwriter', 'pg_stat_checkpointer', 'pg_stat_wal', \
    'pg_stat_io') UNION ALL SELECT 'pg_read_all_stats' WHERE pg_has_role('pg_read_all_stats', 'USAGE')";

/// Who waits for whom; `waitstart` exists since version 14.
pub const LOCK_WAITS: &str = "SELECT waiting.pid AS waiting_connection, blocking.pid AS blocking_connection, \
    trunc(extract(epoch FROM clock_timestamp() - wanted.waitstart) * 1000) AS waited_ms, \
    coalesce(wanted.relation::regclass::text, wanted.locktype) AS locked, wanted.mode AS mode, \
    left(waiting.query, 200) AS waiting_statement, left(blocking.query, 200) AS blocking_statement \
    FROM pg_locks AS wanted JOIN pg_stat_activity AS waiting ON waiting.pid = wanted.pid \
    CROSS JOIN LATERAL unnest(pg_blocking_pids(wanted.pid)) AS blocker (pid) \
    JOIN pg_stat_activity AS blocking ON blocking.pid = blocker.pid WHERE NOT wanted.granted LIMIT 1000";

/// One row with a column for each counter, from the views that are needed.
pub fn queries(counters: &[Counter], names: &[String]) -> CounterQueries {
    let exists = |name: &str| {
        let io = IO.iter().find_map(|view| name.strip_prefix(view));
        let column = match io {
            Some(io) => format!("pg_stat_io.{io}"),
            None if name.starts_with(ACTIVITY) => MAY_SEE_ALL.to_owned(),
            None => name.to_owned(),
        };
        names.contains(&column)
    };
    let mut columns = BTreeMap::new();
    let mut values = Vec::new();
    let mut views = Vec::new();
    for (column, counter) in counters.iter().enumerate() {
        let complete = |expression: &&String| named(expression).iter().all(|name| exists(name));
        if let Some(expression) = counter.postgres.iter().find(complete) {
            let name = &counter.column;
            values.push(format!("trunc(({expression})::numeric) AS {name}"));
            columns.insert(name.to_lowercase(), vec![column]);
            views.extend(named(expression).into_iter().filter_map(view_of));
        }
    }
    views.sort_unstable();
    views.dedup();
    let sql = format!("SELECT {} FROM {}", values.join(", "), views.join(", "));
    CounterQueries {
        statements: vec![sql],
        columns,
        in_rows: false,
    }
}

/// The `view.column` pairs in an expression.
fn named(expression: &str) -> Vec<&str> {
    expression
        .split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.')))
        .filter(|word| word.contains('.') && view_of(word).is_some())
        .collect()
}

fn view_of(name: &str) -> Option<&'static str> {
    let (view, _) = name.split_once('.')?;
    VIEWS
        .iter()
        .find(|(known, _)| *known == view)
        .map(|(_, source)| *source)
}
