//! TPC-C in stored procedures does what it does statement by statement, alike on each server; skipped, and said so, where
//! none is installed.

use std::path::Path;

use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Endpoint, FleetShare, TpccDrive};

use crate::on_both_systems;
use crate::support::system::System;
use crate::support::together::together;
use crate::support::{contents, parameters, sql, sqlite};

const CLIENTS: u32 = 4;
const USERS: u32 = 8;

on_both_systems!(
    clients_of_one_drive_create_the_procedures_once,
    procedures_that_cannot_be_created_are_no_lost_connection,
    one_user_leaves_the_same_database_either_way,
    #[ignore = "long; its siblings are the test above, and the same of statements in servers.rs"]
    one_user_and_eight_leave_a_consistent_database,
);

fn one_user_leaves_the_same_database_either_way<S: System>(server: &S) {
    let by_statements = server.with_warehouses("statements");
    let by_procedures = server.with_warehouses("procedures");
    assert_eq!(
        contents::left(S::HASH, &by_procedures, true),
        contents::left(S::HASH, &by_statements, false)
    );
    server.forget("statements");
    server.forget("procedures");
}

fn one_user_and_eight_leave_a_consistent_database<S: System>(server: &S) {
    contents::assert_procedures_leave_it_consistent(&server.with_warehouses("eight"));
}

/// A database in which all that a drive looks at before its load are the warehouses.
fn with_warehouses_only<S: System>(server: &S, database: &str) -> Endpoint {
    let create = format!("CREATE DATABASE {database}");
    sql(&server.at(S::MAINTENANCE), &[&create]);
    let endpoint = server.at(database);
    let table = "CREATE TABLE warehouse (w_id INT)";
    sql(&endpoint, &[table, "INSERT INTO warehouse VALUES (1), (2)"]);
    endpoint
}

fn client_of(endpoint: &Endpoint, directory: &Path, client: u32) -> TpccDrive {
    let mut request = parameters(endpoint.clone(), directory);
    let drive = &mut request.drive;
    (drive.transactions, drive.duration_s) = (None, Some(0.1));
    drive.virtual_users = USERS;
    drive.fleet = Some(FleetShare {
        client,
        clients: CLIENTS,
        users: USERS * CLIENTS,
        user_numbers: (USERS * client..USERS * (client + 1)).collect(),
        start_path: directory.join("start").to_string_lossy().into(),
    });
    request.procedures = true;
    request
}

fn share_of(request: &TpccDrive) -> &FleetShare {
    request.drive.fleet.as_ref().expect("one of several")
}

/// Drives with several clients.
fn drive_together(endpoint: &Endpoint) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let requests: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let out = directory.path().join(client.to_string());
            std::fs::create_dir(&out).expect("a directory");
            client_of(endpoint, &out, client)
        })
        .collect();
    together(&requests, share_of, fairtrial_load::drive);
}

fn clients_of_one_drive_create_the_procedures_once<S: System>(server: &S) {
    let endpoint = with_warehouses_only(server, "fleet");
    drive_together(&endpoint);
    // Created anew, it would lose this again.
    let (alter, kept) = match endpoint {
        Endpoint::Postgres { .. } => (
            "ALTER FUNCTION tpcc_stock_level SECURITY DEFINER",
            "DEFINER",
        ),
        _ => (
            "ALTER PROCEDURE tpcc_stock_level SQL SECURITY INVOKER",
            "INVOKER",
        ),
    };
    sql(&endpoint, &[alter]);
    drive_together(&endpoint);
    let query = "SELECT security_type FROM information_schema.routines WHERE routine_name = 'tpcc_stock_level' \
                 AND 'fleet' IN (routine_schema, routine_catalog)";
    assert_eq!(sql(&endpoint, &[query])[0].rows, [[Some(kept.to_owned())]]);
    server.forget("fleet");
}

fn procedures_that_cannot_be_created_are_no_lost_connection<S: System>(server: &S) {
    let endpoint = with_warehouses_only(server, "refusing");
    sql(
        &endpoint,
        &[
            "CREATE USER only_reading",
            "GRANT SELECT ON warehouse TO only_reading",
        ],
    );
    let mut as_reader = endpoint.clone();
    let (Endpoint::Mysql { user, .. } | Endpoint::Postgres { user, .. }) = &mut as_reader else {
        panic!("{as_reader:?}");
    };
    *user = "only_reading".into();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = parameters(as_reader, directory.path());
    request.procedures = true;
    let refused = |expected: &str| {
        let error = fairtrial_load::drive(&request, &mut Vec::new()).expect_err("refused");
        let LoadError::Statement { doing, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(doing, expected);
    };
    refused("creating the procedures");
    sql(&endpoint, &["DROP TABLE warehouse"]);
    refused("counting the warehouses");
    server.forget("refusing");
    let user = ["DROP USER only_reading"];
    sql(&server.at(S::MAINTENANCE), &user);
}

#[test]
fn sqlite_has_no_procedures_and_says_so_before_anything_starts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = parameters(sqlite(&directory.path().join("none.db")), directory.path());
    request.procedures = true;
    let error = fairtrial_load::drive(&request, &mut Vec::new()).expect_err("refused");
    assert!(
        matches!(
            error,
            LoadError::Parameter {
                field: "procedures",
                ..
            }
        ),
        "{error:?}"
    );
}
