//! What only PostgreSQL does; skipped, and said so, where none is installed.

use crate::support::postgres::{Server, USER};
use crate::support::system::System as _;
use crate::support::{codes, drive, number, parameters, sql};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, Sql};

const LOCAL_ONLY: [&str; 2] = ["-c", "listen_addresses="];

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
fn errors_of_statements_have_their_code() {
    let Some(server) = Server::common() else {
        return;
    };
    let wrong = fairtrial_load::sql(&Sql {
        endpoint: server.endpoint("postgres"),
        statements: vec!["SELECT nonsense".into()],
        connect_timeout_ms: 0,
    });
    let Err(LoadError::Statement { source, .. }) = wrong else {
        panic!("{wrong:?}")
    };
    assert_eq!((source.code.as_str(), source.retryable), ("42703", false));
}

#[test]
fn a_row_that_is_missing_fails_its_transactions_and_nothing_of_them_stays() {
    let Some(server) = Server::common() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.with_warehouses("torn");
    sql(&endpoint, &["TRUNCATE stock"]);
    let mut request = parameters(endpoint.clone(), directory.path());
    request.procedures = true;
    request.drive.transactions = Some(60);
    let driven = drive(&request);
    let ordered = &driven.transactions["new_order"];
    assert!(ordered.failed > 0 && ordered.committed == 0, "{ordered:?}");
    let codes = codes(&driven);
    assert!(codes.keys().eq(["P0001"].iter()), "{codes:?}");
    assert!(
        driven
            .errors
            .iter()
            .all(|error| error.message.contains("a stock is missing"))
    );
    let left = "SELECT COUNT(*) FROM orders WHERE o_id > 3000";
    assert_eq!(number(&endpoint, left), 0);
    assert!(driven.transactions["payment"].committed > 0);
    server.forget("torn");
}
