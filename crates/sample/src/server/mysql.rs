//! MariaDB and MySQL: status variables, and counters of `INNODB_METRICS` where no status variable says the same.

use std::collections::BTreeMap;

use super::counters::Counter;
use super::reading::{Family, Reading};

/// How the list marks a counter of the table.
const METRIC: &str = "INNODB_METRICS.";

/// `INFORMATION_SCHEMA` keeps its copy of these tables for a tenth of a second, so asking often costs little more.
/// The limit bounds what a pile-up of a thousand connections on one row, each waiting for all before it, can say.
pub const LOCK_WAITS_MARIADB: &str = "SELECT waiting.trx_mysql_thread_id AS waiting_connection, \
    blocking.trx_mysql_thread_id AS blocking_connection, \
    TIMESTAMPDIFF(MICROSECOND, waiting.trx_wait_started, SYSDATE(6)) DIV 1000 AS waited_ms, \
    CONCAT(wanted.lock_table, ' ', COALESCE(wanted.lock_index, '')) AS locked, wanted.lock_mode AS mode, \
    LEFT(waiting.trx_query, 200) AS waiting_statement, LEFT(blocking.trx_query, 200) AS blocking_statement \
    FROM information_schema.INNODB_LOCK_WAITS AS pair \
    JOIN information_schema.INNODB_TRX AS waiting ON waiting.trx_id = pair.requesting_trx_id \
    JOIN information_schema.INNODB_TRX AS blocking ON blocking.trx_id = pair.blocking_trx_id \
    LEFT JOIN information_schema.INNODB_LOCKS AS wanted ON wanted.lock_id = pair.requested_lock_id LIMIT 1000";

/// The same from MySQL's own view of `performance_schema`.
pub const LOCK_WAITS_MYSQL: &str = "SELECT waiting_pid AS waiting_connection, blocking_pid AS blocking_connection, \
    wait_age_secs * 1000 AS waited_ms, CONCAT(locked_table, ' ', COALESCE(locked_index, '')) AS locked, \
    waiting_lock_mode AS mode, LEFT(waiting_query, 200) AS waiting_statement, \
    LEFT(blocking_query, 200) AS blocking_statement FROM sys.innodb_lock_waits LIMIT 1000";

/// Says which names exist; of the table's counters only those that are switched on, since the others stand still.
pub fn probe(family: Family, counters: &[Counter]) -> String {
    names_where(family, switched_on(family), counters)
}

/// The same of a MariaDB whose table of counters is as MySQL's.
pub fn older_probe(counters: &[Counter]) -> String {
    names_where(Family::Mariadb, switched_on(Family::Mysql), counters)
}

fn names_where(family: Family, switched_on: &str, counters: &[Counter]) -> String {
    let (metrics, variables) = parted(counters.iter().flat_map(|counter| &counter.mysql));
    format!(
        "SELECT VARIABLE_NAME FROM {} WHERE VARIABLE_NAME IN ({}) UNION ALL \
         SELECT CONCAT('{METRIC}', NAME) FROM information_schema.INNODB_METRICS WHERE {} AND NAME IN ({})",
        status_table(family),
        quoted(&variables),
        switched_on,
        quoted(&metrics),
    )
}

/// `SHOW GLOBAL STATUS` where it says everything, 0.2 ms of a server's time; one statement over both tables elsewhere.
pub fn reading(family: Family, counters: &[Counter], names: &[String]) -> Reading {
    let exists = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    let mut columns = BTreeMap::<String, Vec<usize>>::new();
    let mut asked = Vec::new();
    for (column, counter) in counters.iter().enumerate() {
        if let Some(name) = counter.mysql.iter().find(|name| exists(name)) {
            columns
                .entry(name.trim_start_matches(METRIC).to_lowercase())
                .or_default()
                .push(column);
            asked.push(name);
        }
    }
    let (metrics, variables) = parted(asked.into_iter());
    let variables = quoted(&variables);
    let sql = if metrics.is_empty() {
        format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({variables})")
    } else {
        format!(
            "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM {} WHERE VARIABLE_NAME IN ({variables}) UNION ALL \
             SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN ({})",
            status_table(family),
            quoted(&metrics),
        )
    };
    Reading {
        sql,
        columns,
        in_rows: true,
    }
}

fn status_table(family: Family) -> &'static str {
    match family {
        Family::Mariadb => "information_schema.GLOBAL_STATUS",
        _ => "performance_schema.global_status",
    }
}

fn switched_on(family: Family) -> &'static str {
    match family {
        Family::Mariadb => "ENABLED = 1",
        _ => "STATUS = 'enabled'",
    }
}

/// Names of the table's counters, bare, and status variables.
fn parted<'a>(names: impl Iterator<Item = &'a String>) -> (Vec<&'a str>, Vec<&'a str>) {
    let (metrics, variables): (Vec<&str>, Vec<&str>) = names
        .map(String::as_str)
        .partition(|name| name.starts_with(METRIC));
    let bare = |name: &'a str| name.trim_start_matches(METRIC);
    (metrics.into_iter().map(bare).collect(), variables)
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("'{name}'"))
        .collect::<Vec<_>>()
        .join(", ")
}
