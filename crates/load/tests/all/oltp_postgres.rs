//! The OLTP family on a real, private PostgreSQL; skipped, and said so, where none is installed.

use crate::support::oltp::{
    PROFILES, SPECIAL, TABLE_SIZE, drive, load, loading, parameters, tables,
};
use crate::support::postgres::Server;
use crate::support::{codes, completed, number, sql, sqlite};
use fairtrial_protocol::oltp::{Distribution, OltpCheck, Profile, Protocol};

fn server() -> Option<Server> {
    Server::start("local all all trust\n", &["-c", "listen_addresses="])
}

#[test]
fn content_is_the_same_as_on_sqlite_and_for_any_number_of_threads() {
    let Some(server) = server() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    for distribution in [SPECIAL, Distribution::Zipfian { exponent: 0.8 }] {
        let file = sqlite(&directory.path().join("t.db"));
        let mut asked = loading(file, Profile::ReadWrite, distribution);
        asked.table_size = 25_000;
        let embedded = load(&asked);
        asked.endpoint = server.endpoint("content");
        for threads in [1, 3] {
            asked.threads = threads;
            assert_eq!(load(&asked), embedded, "{threads} threads");
        }
        let read_back = fairtrial_load::oltp_content_sha256(&asked).expect("it can be read");
        assert_eq!(read_back, embedded.content_sha256);
    }
    let endpoint = server.endpoint("content");
    sql(
        &endpoint,
        &["INSERT INTO sbtest1 (k, c, pad) VALUES (1, '', '')"],
    );
    let last = number(&endpoint, "SELECT MAX(id) FROM sbtest1");
    assert_eq!(last, 25_001, "the server goes on with the keys");
}

#[test]
fn every_profile_runs_prepared_and_as_text_and_leaves_tables_that_pass_their_check() {
    let Some(server) = server() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("profiles");
    for profile in PROFILES {
        for protocol in [Protocol::Prepared, Protocol::Text] {
            load(&loading(endpoint.clone(), profile, SPECIAL));
            let mut asked = parameters(endpoint.clone(), directory.path(), profile, 30);
            asked.protocol = protocol;
            let driven = drive(&asked);
            assert_eq!((completed(&driven), driven.errors.len()), (30, 0));
            if profile == Profile::BulkInsert {
                continue;
            }
            let checked = fairtrial_load::check_oltp(&OltpCheck {
                endpoint: endpoint.clone(),
                profile,
                tables: tables(profile),
                table_size: TABLE_SIZE,
            });
            for condition in checked.expect("it can be checked").conditions {
                assert_eq!(condition.violations, 0, "{profile:?}: {condition:?}");
            }
        }
    }
    // And the check sees what is wrong.
    load(&loading(endpoint.clone(), Profile::ReadOnly, SPECIAL));
    sql(&endpoint, &["UPDATE sbtest1 SET c = 'short' WHERE id = 5"]);
    let checked = fairtrial_load::check_oltp(&OltpCheck {
        endpoint,
        profile: Profile::ReadOnly,
        tables: 3,
        table_size: TABLE_SIZE,
    });
    let violations: Vec<_> = checked
        .expect("it can be checked")
        .conditions
        .iter()
        .map(|condition| condition.violations)
        .collect();
    assert_eq!(violations, [0, 0, 1]);
}

#[test]
fn many_users_meet_conflicts_repeat_them_and_leave_rows_in_pairs() {
    let Some(server) = server() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("crowded");
    load(&loading(endpoint.clone(), Profile::ReadWrite, SPECIAL));
    let mut asked = parameters(
        endpoint.clone(),
        directory.path(),
        Profile::ReadWrite,
        1_000,
    );
    asked.drive.virtual_users = 16;
    let driven = drive(&asked);
    let failed = driven.transactions["read_write"].failed;
    assert_eq!(completed(&driven) + failed, 1_000);
    let known = ["40P01", "23505"];
    assert!(
        codes(&driven).keys().all(|code| known.contains(code)),
        "{:?}",
        driven.errors
    );
    let count = "SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2) + (SELECT COUNT(*) FROM sbtest3)";
    assert_eq!(number(&endpoint, count), 3_000, "rows come and go in pairs");
}
