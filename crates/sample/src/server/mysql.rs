//! MariaDB and MySQL: status variables, counters of `INNODB_METRICS` where no status variable says the same, and lines
//! of InnoDB's monitor where a server has neither, as MySQL before 8.0.30.

use std::collections::BTreeMap;

use fairtrial_protocol::load::Rows;

use super::counters::{Counter, LINE, METRIC};
use super::queries::{CounterQueries, first_cells};

/// The monitor's text is its row's last column. It lists every transaction too, so it is asked for as a last resort.
const MONITOR: &str = "SHOW ENGINE INNODB STATUS";

/// Every status variable: its name comes first. `performance_schema.global_status` leaves those of statements out.
pub const STATUS: &str = "SHOW GLOBAL STATUS";

/// Says how the table of counters tells which are switched on; a server without the table says nothing.
pub const TABLE: &str = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema' \
    AND TABLE_NAME = 'INNODB_METRICS' AND COLUMN_NAME IN ('ENABLED', 'STATUS')";

/// Pairs of who waits and who is waited for, from InnoDB's own tables, by how long; a limit bounds what a pile-up of a
/// thousand connections on one row, each waiting for all before it, can say.
macro_rules! lock_waits {
    ($waited_ms:literal) => {
        concat!(
            "SELECT waiting.trx_mysql_thread_id AS waiting_connection, \
             blocking.trx_mysql_thread_id AS blocking_connection, ",
            $waited_ms,
            " AS waited_ms, \
             CONCAT(wanted.lock_table, ' ', COALESCE(wanted.lock_index, '')) AS locked, wanted.lock_mode AS mode, \
             LEFT(waiting.trx_query, 200) AS waiting_statement, LEFT(blocking.trx_query, 200) AS blocking_statement \
             FROM information_schema.INNODB_LOCK_WAITS AS pair \
             JOIN information_schema.INNODB_TRX AS waiting ON waiting.trx_id = pair.requesting_trx_id \
             JOIN information_schema.INNODB_TRX AS blocking ON blocking.trx_id = pair.blocking_trx_id \
             LEFT JOIN information_schema.INNODB_LOCKS AS wanted ON wanted.lock_id = pair.requested_lock_id LIMIT 1000"
        )
    };
}

/// `INFORMATION_SCHEMA` keeps its copy of these tables for a tenth of a second, so asking often costs little more.
pub const LOCK_WAITS_MARIADB: &str =
    lock_waits!("TIMESTAMPDIFF(MICROSECOND, waiting.trx_wait_started, SYSDATE(6)) DIV 1000");

/// `MySQL` before 5.7 begins to know of fractions of a second with 5.6, and of waits in whole ones.
pub const LOCK_WAITS_EARLIER_MYSQL: &str =
    lock_waits!("TIMESTAMPDIFF(SECOND, waiting.trx_wait_started, SYSDATE()) * 1000");

/// The same from MySQL's own view of `performance_schema`.
pub const LOCK_WAITS_MYSQL: &str = "SELECT waiting_pid AS waiting_connection, blocking_pid AS blocking_connection, \
    wait_age_secs * 1000 AS waited_ms, CONCAT(locked_table, ' ', COALESCE(locked_index, '')) AS locked, \
    waiting_lock_mode AS mode, LEFT(waiting_query, 200) AS waiting_statement, \
    LEFT(blocking_query, 200) AS blocking_statement FROM sys.innodb_lock_waits LIMIT 1000";

/// Says which counters of the table are switched on, since the others stand still; `table` is the answer to [`TABLE`].
pub fn switched_on(table: &Rows) -> Option<String> {
    let condition = match first_cells(table).next()? {
        "ENABLED" => "ENABLED = 1", // MariaDB from 10.3 on
        _ => "STATUS = 'enabled'",
    };
    Some(format!(
        "SELECT CONCAT('{METRIC}', NAME) FROM information_schema.INNODB_METRICS WHERE {condition}"
    ))
}

/// One statement for each place where the first names are that exist; lines of the monitor exist in every server.
pub fn queries(counters: &[Counter], names: &[String]) -> CounterQueries {
    let exists = |name: &str| {
        name.starts_with(LINE) || names.iter().any(|other| other.eq_ignore_ascii_case(name))
    };
    let mut columns = BTreeMap::<String, Vec<usize>>::new();
    let (mut variables, mut metrics, mut monitored) = (Vec::new(), Vec::new(), false);
    for (column, counter) in counters.iter().enumerate() {
        let Some(name) = counter.mysql.iter().find(|name| exists(name)) else {
            continue;
        };
        let bare_name = name.trim_start_matches(METRIC);
        columns
            .entry(bare_name.to_lowercase())
            .or_default()
            .push(column);
        if bare_name != name {
            metrics.push(bare_name);
        } else if name.starts_with(LINE) {
            monitored = true;
        } else {
            variables.push(bare_name);
        }
    }
    let mut statements = Vec::new();
    if !variables.is_empty() {
        statements.push(format!(
            "{STATUS} WHERE Variable_name IN ({})",
            quoted(&variables)
        ));
    }
    if !metrics.is_empty() {
        statements.push(format!(
            "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN ({})",
            quoted(&metrics)
        ));
    }
    if monitored {
        statements.push(MONITOR.to_owned());
    }
    CounterQueries {
        statements,
        columns,
        in_rows: true,
    }
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("'{name}'"))
        .collect::<Vec<_>>()
        .join(", ")
}
