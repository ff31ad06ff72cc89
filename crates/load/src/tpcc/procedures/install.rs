//! How the procedures come into a database: by one client, or by several of one drive that begin at once.

use sha2::{Digest as _, Sha256};

use super::{calls, create, text};
use crate::driver::dialect::Dialect;
use crate::driver::{Connection, DriverError, ErrorKind};

/// Key of PostgreSQL's advisory lock, which belongs to one database: `tpcc_pro` in letters.
const KEY: i64 = 0x7470_6363_5f70_726f;
/// The same on MariaDB and MySQL, whose names hold on all of the server and have 64 characters at most.
const NAME: &str = "CONCAT('fairtrial_tpcc_', MD5(DATABASE()))";
/// Longest wait for the other clients, each of which creates five procedures at most.
const WAIT_S: u32 = 60;

/// Creates the procedures anew; with other clients (`shared`), the first one does so for all of them.
///
/// Each client prepares its calls when this is done. So a procedure may not go once one client has it, not even for the
/// moment until it comes again: what the first one creates is marked, and the others leave it.
pub async fn install<C: Connection>(
    connection: &mut C,
    dialect: Dialect,
    shared: bool,
) -> Result<(), DriverError> {
    let Some(statements) = create(dialect) else {
        return Ok(());
    };
    if !shared {
        return all(connection, statements).await;
    }
    // If anything fails, the lock goes with the connection.
    lock(connection, dialect).await?;
    let there = connection.number::<usize>(&marked(dialect)).await?;
    if there != Some(calls(dialect).len()) {
        all(connection, statements).await?;
        all(connection, marks(dialect)).await?;
    }
    let unlock = match dialect {
        Dialect::Postgres => "COMMIT",
        Dialect::Mysql | Dialect::Sqlite => &format!("DO RELEASE_LOCK({NAME})"),
    };
    connection.text(unlock).await.map(|_| ())
}

async fn all<C: Connection>(
    connection: &mut C,
    statements: impl Iterator<Item = impl AsRef<str>>,
) -> Result<(), DriverError> {
    for statement in statements {
        connection.text(statement.as_ref()).await?;
    }
    Ok(())
}

async fn lock<C: Connection>(connection: &mut C, dialect: Dialect) -> Result<(), DriverError> {
    match dialect {
        Dialect::Postgres => {
            // What was created while this one waited is seen whatever the server's default isolation is.
            let statements = [
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE".into(),
                format!("SET LOCAL lock_timeout = '{WAIT_S}s'"),
                format!("SELECT pg_advisory_xact_lock({KEY})"),
            ];
            all(connection, statements.iter()).await
        }
        Dialect::Mysql | Dialect::Sqlite => {
            let lock = format!("SELECT GET_LOCK({NAME}, {WAIT_S})");
            if connection.number(&lock).await? == Some(1) {
                return Ok(());
            }
            Err(DriverError {
                kind: ErrorKind::LockTimeout,
                code: "procedures_locked".into(),
                message: format!("another client has been creating them for {WAIT_S} s"),
                retryable: false,
            })
        }
    }
}

/// What the procedures of this text bear.
fn mark(dialect: Dialect) -> String {
    let hash = Sha256::digest(text(dialect).unwrap_or_default());
    let start = "fairtrial ".to_owned();
    hash[..8]
        .iter()
        .fold(start, |mark, byte| format!("{mark}{byte:02x}"))
}

fn marks(dialect: Dialect) -> impl Iterator<Item = String> {
    let mark = mark(dialect);
    let created = create(dialect).into_iter().flatten();
    let names = created.filter_map(|statement| {
        let (drop, kind_and_name) = statement.split_once(" IF EXISTS ")?;
        Some((drop.strip_prefix("DROP ")?, kind_and_name))
    });
    names.map(move |(kind, name)| match dialect {
        Dialect::Postgres => format!("COMMENT ON {kind} {name} IS '{mark}'"),
        Dialect::Mysql | Dialect::Sqlite => format!("ALTER {kind} {name} COMMENT '{mark}'"),
    })
}

/// The query for the number of procedures that are there as this client would create them.
fn marked(dialect: Dialect) -> String {
    let mark = mark(dialect);
    match dialect {
        Dialect::Postgres => format!(
            "SELECT COUNT(*) FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace \
             WHERE nspname = current_schema() AND obj_description(pg_proc.oid, 'pg_proc') = '{mark}'"
        ),
        // They run with the rights of who created them, and in the mode of then.
        Dialect::Mysql | Dialect::Sqlite => format!(
            "SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE() \
             AND routine_comment = '{mark}' AND definer = CURRENT_USER() AND sql_mode = @@sql_mode"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_procedure_is_marked_by_its_kind_and_name() {
        for (dialect, last) in [
            (Dialect::Mysql, "ALTER PROCEDURE tpcc_stock_level COMMENT "),
            (
                Dialect::Postgres,
                "COMMENT ON FUNCTION tpcc_stock_level IS ",
            ),
        ] {
            let marks: Vec<_> = marks(dialect).collect();
            assert_eq!(marks.len(), calls(dialect).len());
            assert_eq!(marks[4], format!("{last}'{}'", mark(dialect)));
        }
        assert_ne!(mark(Dialect::Mysql), mark(Dialect::Postgres));
    }
}
