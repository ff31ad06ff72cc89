//! The same on a real, private PostgreSQL; skipped, and said so, where none is installed.

use crate::support::postgres::{Server, USER};
use crate::support::{
    assert_consistent, completed, drive, effects, load, number, parameters, sql, sqlite,
};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql};

const TRUST: &str = "local all all trust\n";
const LOCAL_ONLY: [&str; 2] = ["-c", "listen_addresses="];

#[test]
fn content_is_the_same_as_on_sqlite_and_for_any_number_of_threads() {
    // What is vacuumed and analysed is the load's doing.
    let options = [&LOCAL_ONLY[..], &["-c", "autovacuum=off"]].concat();
    let Some(server) = Server::start(TRUST, &options) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let embedded = load(sqlite(&directory.path().join("t.db")), 1, 1);
    let endpoint = server.endpoint("content");
    for threads in [1, 3] {
        let loaded = load(endpoint.clone(), 1, threads);
        assert_eq!(loaded, embedded, "{threads} threads");
    }
    let read_back = fairtrial_load::content_sha256(&endpoint, 1).expect("the content can be read");
    assert_eq!(
        read_back, embedded.content_sha256,
        "and it is what the tables hold"
    );
    let indexes = "SELECT COUNT(*) FROM pg_indexes WHERE schemaname = 'public'";
    assert_eq!(number(&endpoint, indexes), 10, "eight primary keys and two");
    let unknown = "SELECT COUNT(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace \
        AND (reltuples <= 0 OR relallvisible < relpages)";
    assert_eq!(number(&endpoint, unknown), 0, "vacuumed and analysed");
}

#[test]
fn all_conditions_hold_and_all_columns_change_when_eight_users_drive() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("driven");
    load(endpoint.clone(), 2, 2);
    assert_consistent(&endpoint);
    let before = effects::look(&endpoint);
    let mut asked = parameters(endpoint.clone(), directory.path());
    (asked.drive.virtual_users, asked.drive.transactions) = (1, Some(300));
    effects::assert_counts(&endpoint, &before, &drive(&asked));
    (asked.drive.virtual_users, asked.drive.transactions) = (8, Some(2_000));
    let driven = drive(&asked);
    let failed: u64 = driven
        .transactions
        .values()
        .map(|outcomes| outcomes.failed)
        .sum();
    assert_eq!(completed(&driven) + failed, 2_000);
    let is_expected = |kind: &str| kind == "deadlock";
    assert!(
        driven.errors.iter().all(|error| is_expected(&error.kind)),
        "{:?}",
        driven.errors
    );
    assert_eq!(driven.effective["transaction_isolation"], "read committed");
    assert_consistent(&endpoint);
    effects::assert_changed(&endpoint, &before);
    corrupted_rows_are_named(&endpoint);
}

fn corrupted_rows_are_named(endpoint: &Endpoint) {
    sql(
        endpoint,
        &[
            "UPDATE customer SET c_balance = c_balance + 0.01 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 8",
            "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 5 AND no_o_id = 2900",
        ],
    );
    let checked = crate::support::check(endpoint);
    let violated = checked
        .conditions
        .iter()
        .filter(|condition| condition.violations > 0);
    let clauses: Vec<_> = violated
        .map(|condition| condition.clause.trim_start_matches("3.3.2."))
        .collect();
    assert_eq!(clauses, ["3", "5", "10", "11", "12"]);
    let tenth = &checked.conditions[9].examples[0];
    assert!(tenth.starts_with("c_w_id=2 c_d_id=3 c_id=8 "), "{tenth}");
}

#[test]
fn every_way_to_prove_a_password_is_known_and_a_wrong_one_is_refused_without_being_told() {
    let hba = "local all tester trust\nlocal all clear password\nlocal all hashed md5\nlocal all proved scram-sha-256\n";
    let Some(server) = Server::start(hba, &LOCAL_ONLY) else {
        return;
    };
    let accounts = [
        "CREATE ROLE clear LOGIN PASSWORD 'open sesame'",
        "SET password_encryption = 'md5'",
        "CREATE ROLE hashed LOGIN PASSWORD 'open sesame'",
        "SET password_encryption = 'scram-sha-256'",
        "CREATE ROLE proved LOGIN PASSWORD 'open sesame'",
    ];
    sql(&server.endpoint("postgres"), &accounts);
    let Endpoint::Postgres {
        socket_directory, ..
    } = server.endpoint("postgres")
    else {
        panic!("a PostgreSQL endpoint")
    };
    let ask = |user: &str, password: &str| {
        fairtrial_load::sql(&Sql {
            endpoint: Endpoint::Postgres {
                socket_directory: socket_directory.clone(),
                host: None,
                port: None,
                user: user.into(),
                password: password.into(),
                tls: None,
                database: "postgres".into(),
            },
            statements: vec!["SELECT current_user".into()],
            connect_timeout_ms: 0,
        })
    };
    for user in ["clear", "hashed", "proved"] {
        let rows = ask(user, "open sesame").expect("the password is right");
        assert_eq!(rows[0].rows, [[Some(user.to_owned())]]);
        let wrong = ask(user, "close sesame").expect_err("the password is wrong");
        let LoadError::Connect { source, .. } = &wrong else {
            panic!("{wrong:?}")
        };
        assert_eq!(source.code, "28P01");
        assert!(!format!("{wrong:?}").contains("sesame"), "{wrong:?}");
    }
    assert!(ask(USER, "").is_ok(), "trust");
}

#[test]
fn statements_give_columns_and_text_with_null_kept_and_errors_their_code() {
    let Some(server) = Server::start(TRUST, &LOCAL_ONLY) else {
        return;
    };
    let endpoint = server.endpoint("postgres");
    let rows = sql(
        &endpoint,
        &[
            "SELECT 1 AS one, NULL AS nothing, 1.50 AS money",
            "SET jit = off",
        ],
    );
    assert_eq!(rows[0].columns, ["one", "nothing", "money"]);
    assert_eq!(
        rows[0].rows,
        [[Some("1".into()), None, Some("1.50".into())]]
    );
    assert!(rows[1].columns.is_empty() && rows[1].rows.is_empty());
    let wrong = fairtrial_load::sql(&Sql {
        endpoint,
        statements: vec!["SELECT nonsense".into()],
        connect_timeout_ms: 0,
    });
    let Err(LoadError::Statement { source, .. }) = wrong else {
        panic!("{wrong:?}")
    };
    assert_eq!((source.code.as_str(), source.retryable), ("42703", false));
}
