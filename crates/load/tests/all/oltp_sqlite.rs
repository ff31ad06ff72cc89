//! Every profile of the OLTP family on embedded SQLite: what it changes, what it refuses, what a seed determines.

use std::path::Path;

use crate::support::oltp::{
    PROFILES, SPECIAL, TABLE_SIZE, drive, load, loading, parameters, tables, try_drive,
};
use crate::support::{completed, number, sql, sqlite};
use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Condition, Endpoint};
use fairtrial_protocol::oltp::{Layout, OltpCheck, OltpDrive, Profile, Protocol};
use tempfile::TempDir;

/// A database fresh from the loader.
fn loaded(profile: Profile) -> (TempDir, Endpoint) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("oltp.db"));
    load(&loading(endpoint.clone(), profile, SPECIAL));
    (directory, endpoint)
}

fn total(endpoint: &Endpoint, what: &str, tables: u32) -> i64 {
    let one = |table| number(endpoint, &format!("SELECT {what} FROM sbtest{table}"));
    (1..=tables).map(one).sum()
}

fn check(endpoint: &Endpoint, profile: Profile) -> Vec<Condition> {
    let request = OltpCheck {
        endpoint: endpoint.clone(),
        profile,
        tables: tables(profile),
        table_size: TABLE_SIZE,
    };
    fairtrial_load::check_oltp(&request)
        .expect("the tables can be checked")
        .conditions
}

fn violated(endpoint: &Endpoint, profile: Profile) -> Vec<(String, u64)> {
    let conditions = check(endpoint, profile).into_iter();
    conditions
        .filter(|condition| condition.violations > 0)
        .map(|condition| (condition.clause, condition.violations))
        .collect()
}

#[test]
fn every_profile_does_what_its_name_says_and_leaves_the_tables_whole() {
    for profile in PROFILES {
        let (directory, endpoint) = loaded(profile);
        let tables = tables(profile);
        let look = || {
            let rows = total(&endpoint, "COUNT(*)", tables);
            (rows, total(&endpoint, "COALESCE(SUM(k), 0)", tables))
        };
        let (rows, sum_k) = look();
        let transactions = if profile == Profile::BulkInsert {
            3
        } else {
            60
        };
        let driven = drive(&parameters(
            endpoint.clone(),
            directory.path(),
            profile,
            transactions,
        ));
        assert_eq!(completed(&driven), transactions, "{profile:?}");
        assert_eq!(
            driven.transactions.keys().collect::<Vec<_>>(),
            [profile.name()]
        );
        let drawn = |name: &str| i64::try_from(*driven.drawn.get(name).unwrap_or(&0)).expect("few");
        assert_eq!(
            drawn(profile.name()),
            i64::try_from(transactions).expect("few")
        );
        let (rows_after, sum_k_after) = look();
        let grown = match profile {
            Profile::Insert => 60,
            Profile::Delete => -drawn("rows_changed"),
            Profile::BulkInsert => drawn("bulk_rows"),
            _ => 0,
        };
        assert_eq!(rows_after - rows, grown, "{profile:?}");
        if profile == Profile::UpdateIndex {
            assert_eq!(sum_k_after - sum_k, 60);
        }
        let statements = driven.transactions[profile.name()].statements;
        let request: u64 = match profile {
            Profile::ReadOnly => 60 * 16,
            Profile::ReadWrite => 60 * 20,
            Profile::WriteOnly => 60 * 6,
            _ => transactions,
        };
        assert_eq!(statements, request, "{profile:?}");
        if profile != Profile::BulkInsert {
            assert_eq!(violated(&endpoint, profile), [], "{profile:?}");
        }
    }
}

#[test]
fn rows_read_are_those_of_the_ranges_and_keys_asked_for() {
    let (directory, endpoint) = loaded(Profile::ReadOnly);
    let mut request = parameters(endpoint, directory.path(), Profile::ReadOnly, 40);
    let expected = 40 * (10 + 100 + 1 + 100 + 100);
    for protocol in [Protocol::Prepared, Protocol::Text] {
        request.protocol = protocol;
        let drawn = drive(&request).drawn;
        assert_eq!(drawn["rows_read"], expected, "{protocol:?}");
        assert_eq!((drawn["point_selects"], drawn["sum_ranges"]), (400, 40));
    }
}

#[test]
fn a_seed_determines_what_is_drawn_whatever_the_protocol_and_another_draws_otherwise() {
    let run = |seed, protocol| {
        let (directory, endpoint) = loaded(Profile::ReadWrite);
        let mut request = parameters(endpoint.clone(), directory.path(), Profile::ReadWrite, 30);
        (request.drive.seed, request.protocol) = (seed, protocol);
        drive(&request);
        let mut loading = loading(endpoint, Profile::ReadWrite, SPECIAL);
        loading.threads = 1;
        fairtrial_load::oltp_content_sha256(&loading).expect("the tables can be read")
    };
    let first = run(5, Protocol::Prepared);
    assert_eq!(run(5, Protocol::Prepared), first);
    assert_eq!(
        run(5, Protocol::Text),
        first,
        "text says the same as values apart"
    );
    assert_ne!(run(6, Protocol::Prepared), first);
}

#[test]
fn several_users_share_the_tables_and_nothing_is_lost() {
    let (directory, endpoint) = loaded(Profile::ReadWrite);
    let mut request = parameters(endpoint.clone(), directory.path(), Profile::ReadWrite, 200);
    request.drive.virtual_users = 4;
    let driven = drive(&request);
    assert_eq!(completed(&driven), 200, "{:?}", driven.errors);
    assert_eq!(violated(&endpoint, Profile::ReadWrite), []);
}

#[test]
fn a_bulk_insert_goes_on_after_the_keys_that_are_there() {
    let (directory, endpoint) = loaded(Profile::BulkInsert);
    let mut request = parameters(endpoint.clone(), directory.path(), Profile::BulkInsert, 2);
    request.drive.virtual_users = 2;
    let rows = drive(&request).drawn["bulk_rows"] + drive(&request).drawn["bulk_rows"];
    let count = total(&endpoint, "COUNT(*)", 3);
    assert_eq!(count, i64::try_from(rows).expect("few"));
    assert_eq!(
        count,
        total(&endpoint, "COALESCE(MAX(id), 0)", 3),
        "without a gap"
    );
}

fn refused(change: impl Fn(&mut OltpDrive), profile: Profile) -> LoadError {
    let (directory, endpoint) = loaded(profile);
    let mut request = parameters(endpoint, directory.path(), profile, 1);
    change(&mut request);
    try_drive(&request).expect_err("refused")
}

#[test]
fn tables_of_another_scale_are_refused_with_what_was_asked_and_what_was_found() {
    let larger = refused(|request| request.table_size = 1_001, Profile::ReadOnly);
    assert_eq!(
        larger.to_string(),
        "the tables hold 1000 rows in sbtest1, not 1001"
    );
    let smaller = refused(|request| request.table_size = 999, Profile::ReadOnly);
    assert!(matches!(
        smaller,
        LoadError::Scale {
            expected: 999,
            count: 1_000,
            ..
        }
    ));
    let more = refused(|request| request.tables = 4, Profile::ReadOnly);
    assert!(
        more.to_string().contains("sbtest4, one of the 4 tables"),
        "{more}"
    );
    let fewer = refused(|request| request.table_size = 1_001, Profile::Insert);
    assert!(matches!(fewer, LoadError::Scale { .. }));
}

#[test]
fn contradictory_parameters_are_refused_before_anything_is_asked() {
    let field = |change: fn(&mut OltpDrive), profile| match refused(change, profile) {
        LoadError::Parameter { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(
        field(|request| request.tables = 2, Profile::SelectRandomPoints),
        "tables"
    );
    assert_eq!(
        field(
            |request| request.drive.virtual_users = 4,
            Profile::BulkInsert
        ),
        "tables"
    );
    assert_eq!(
        field(|request| request.mix.range_size = 0, Profile::ReadOnly),
        "mix"
    );
    assert_eq!(
        field(
            |request| request.mix.index_updates = 0,
            Profile::UpdateIndex
        ),
        "mix"
    );
    assert_eq!(
        field(|request| request.table_size = 0, Profile::ReadOnly),
        "table_size"
    );
    assert_eq!(
        field(
            |request| request.mix.point_selects = u32::MAX,
            Profile::ReadOnly
        ),
        "mix"
    );
    let both = |request: &mut OltpDrive| request.drive.duration_s = Some(1.0);
    assert_eq!(field(both, Profile::ReadOnly), "duration_s");
}

#[test]
fn corrupted_rows_are_named() {
    let (_directory, endpoint) = loaded(Profile::ReadWrite);
    sql(
        &endpoint,
        &[
            "DELETE FROM sbtest1 WHERE id = 7",
            "UPDATE sbtest2 SET id = 2000 WHERE id = 9",
            "UPDATE sbtest3 SET pad = '12' WHERE id = 8",
        ],
    );
    let conditions = check(&endpoint, Profile::ReadWrite);
    let examples: Vec<&str> = conditions
        .iter()
        .map(|condition| condition.examples[0].as_str())
        .collect();
    assert_eq!(examples[..2], ["sbtest1 row_count=999", "sbtest2 id=2000"]);
    assert!(examples[2].starts_with("sbtest3 id=8 "), "{examples:?}");
    assert_eq!(
        violated(&endpoint, Profile::Delete).len(),
        2,
        "fewer rows are a delete's own"
    );
}

#[test]
fn loading_is_the_same_for_equal_seeds_only() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path: &Path = &directory.path().join("t.db");
    let mut request = loading(sqlite(path), Profile::ReadWrite, SPECIAL);
    request.table_size = 10_001; // one row into a second unit
    let first = load(&request);
    assert_eq!(
        first.rows.values().copied().collect::<Vec<_>>(),
        [10_001; 3]
    );
    assert_eq!(
        fairtrial_load::oltp_content_sha256(&request).expect("read"),
        first.content_sha256,
        "it is what the tables hold"
    );
    assert_eq!(load(&request), first);
    request.seed += 1;
    assert_ne!(load(&request).content_sha256, first.content_sha256);
    request.layout = Layout::Bulk;
    assert_eq!(load(&request).rows["sbtest3"], 0);
}
