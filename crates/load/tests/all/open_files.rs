//! More users than their process may have open files, each with a connection.

use crate::noop::NoopThread;
use crate::support::apart::{AnyDrive, begin_with_files};
use crate::support::oltp::{SPECIAL, load, loading, parameters};
use crate::support::sqlite;
use fairtrial_protocol::load::Endpoint;
use fairtrial_protocol::oltp::{Distribution, OltpDrive, Profile};

/// Enough for this binary before it drives.
const FILES: u32 = 64;

fn assert_told(mut request: OltpDrive) {
    request.drive.virtual_users = 100;
    let error = begin_with_files(&AnyDrive::Oltp(request), FILES).error();
    for part in ["open_files_limit", "this process may have 64 open files"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn users_of_a_server_are_told_of_the_limit() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = NoopThread::start();
    let endpoint = Endpoint::mysql_at(&server.socket(), "anyone", "any");
    let mut request = parameters(endpoint, directory.path(), Profile::PointSelect, 1);
    // What its one answer says of any table.
    (
        request.tables,
        request.table_size,
        request.skip_transactions,
    ) = (1, 1, true);
    request.distribution = Distribution::Uniform {};
    assert_told(request);
}

#[test]
fn users_of_sqlite_are_told_of_the_limit() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = sqlite(&directory.path().join("t.db"));
    let profile = Profile::PointSelect;
    load(&loading(endpoint.clone(), profile, SPECIAL));
    assert_told(parameters(endpoint, directory.path(), profile, 1));
}
