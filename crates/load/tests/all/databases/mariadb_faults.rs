//! A real, private MariaDB that fails in every way it can while users drive: each fault is counted by its code, the
//! users go on once it has passed, and the window ends when it should.
//!
//! What users shall meet and get over takes as long as a machine that others load needs, so such drives run apart and
//! are asked to end; how a window ends by itself is tested where nobody need get over anything.

use std::time::{Duration, Instant};

use crate::support::mariadb::{Server, shared};
use crate::support::oltp::{drive, try_drive};
use crate::support::proxy::Proxy;
use crate::support::scene::{DRIVER, Scene};
use crate::support::small_disk::SmallDisk;
use crate::support::{apart, completed, hold, number};
use fairtrial_load::LoadError;
use fairtrial_protocol::clock::monotonic_ns;
use fairtrial_protocol::load::{Arrivals, Driven, Endpoint};
use fairtrial_protocol::oltp::{OltpDrive, Profile};

const SECOND_NS: i64 = 1_000_000_000;

fn count(driven: &Driven, code: &str) -> u64 {
    let of_code = driven.errors.iter().filter(|error| error.code == code);
    of_code.map(|error| error.count).sum()
}

fn of_kind(driven: &Driven, kind: &str) -> u64 {
    let of_kind = driven.errors.iter().filter(|error| error.kind == kind);
    of_kind.map(|error| error.count).sum()
}

fn failed(driven: &Driven) -> u64 {
    driven.transactions.values().map(|one| one.failed).sum()
}

fn assert_window(driven: &Driven, request: &OltpDrive) {
    let asked_for = Duration::from_secs_f64(request.drive.duration_s.expect("a timed drive"));
    let length_ns = driven.window.end_ns - driven.window.start_ns;
    assert_eq!(
        Ok(length_ns),
        i64::try_from(asked_for.as_nanos()),
        "exact to the nanosecond"
    );
}

#[test]
fn killed_connections_are_counted_and_opened_again() {
    let Some(server) = shared() else { return };
    let scene = Scene::new(&server, "killed_connections", Profile::ReadWrite, 4);
    let mut driving = scene.begin_apart();
    scene.kill_connections();
    driving.wait_for_errors(4);
    scene.wait_until_they_go_on("Com_commit");
    let driven = driving.result();
    let lost = of_kind(&driven, "connection");
    assert!(
        (4..=8).contains(&lost),
        "each user once: {:?}",
        driven.errors
    );
    assert!(failed(&driven) <= lost);
}

#[test]
fn deadlocks_are_counted_as_the_server_counts_them_and_repeated_until_they_commit() {
    let Some(server) = shared() else { return };
    let mut scene = Scene::new(&server, "deadlocks", Profile::WriteOnly, 8);
    // Few rows updated often, in any order: transactions meet.
    (scene.request.tables, scene.request.mix.non_index_updates) = (1, 10);
    (scene.request.table_size, scene.request.drive.retries) =
        (crate::support::oltp::TABLE_SIZE, 1_000);
    (
        scene.request.drive.transactions,
        scene.request.drive.duration_s,
    ) = (Some(300), None);
    scene.request.drive.arrivals = Arrivals::default();
    let before = scene.server_count("Innodb_deadlocks");
    let driven = drive(&scene.request);
    let deadlocks = count(&driven, "1213");
    let server_count =
        u64::try_from(scene.server_count("Innodb_deadlocks") - before).expect("a count");
    assert!(deadlocks > 0, "{:?}", driven.errors);
    assert!(
        deadlocks <= server_count && server_count <= deadlocks + 8,
        "{deadlocks} counted, {server_count} by the server, which goes on until users have finished"
    );
    assert_eq!(of_kind(&driven, "deadlock"), deadlocks);
    assert_eq!(failed(&driven), 0, "none was given up: {:?}", driven.errors);
    let retried: u64 = driven.transactions.values().map(|one| one.retried).sum();
    assert!(retried > 0 && completed(&driven) == 300);
}

#[test]
fn lock_waits_that_time_out_are_repeated_until_the_lock_is_free() {
    let Some(server) = shared() else { return };
    let mut scene = Scene::new(&server, "lock_waits", Profile::UpdateNonIndex, 2);
    (scene.request.tables, scene.request.drive.retries) = (1, 1_000);
    scene.run(&["SET GLOBAL innodb_lock_wait_timeout = 1"]);
    let mut driving = scene.begin_apart();
    // As long as this is open, no row can be changed.
    let forever = "SET SESSION innodb_lock_wait_timeout = 50";
    let lock = [forever, "BEGIN", "SELECT * FROM sbtest1 FOR UPDATE"];
    let held = hold(&scene.admin, &lock);
    driving.wait_for_errors(2);
    drop(held);
    scene.wait_for_more("Com_stmt_execute");
    let driven = driving.result();
    scene.run(&["SET GLOBAL innodb_lock_wait_timeout = 50"]);
    assert!(count(&driven, "1205") >= 2, "{:?}", driven.errors);
    assert_eq!(of_kind(&driven, "lock_timeout"), count(&driven, "1205"));
    assert_eq!(failed(&driven), 0, "all were repeated");
}

#[test]
fn a_password_changed_meanwhile_is_counted_and_the_right_one_lets_users_go_on() {
    let Some(server) = shared() else { return };
    let scene = Scene::new(&server, "passwords", Profile::PointSelect, 3);
    let mut driving = scene.begin_apart();
    let change = |secret: &str| {
        scene.run(&[&format!(
            "ALTER USER {DRIVER}@localhost IDENTIFIED BY '{secret}'"
        )]);
    };
    change("wrong");
    let since = Instant::now();
    scene.kill_connections();
    driving.wait_for_errors(3 + 15); // each is killed, and refused some times
    change("right");
    scene.wait_until_they_go_on("Com_stmt_execute");
    let driven = driving.result();
    let refused = count(&driven, "1045");
    assert!(
        (15..=3 * (15 + since.elapsed().as_secs())).contains(&refused),
        "three users, each with pauses that grow to a second: {:?}",
        driven.errors
    );
    change("wrong");
    let refused = try_drive(&scene.request).expect_err("nobody gets in");
    let LoadError::Connect { source, .. } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(source.code, "1045");
}

#[test]
fn a_window_that_ends_while_nobody_gets_in_is_as_long_as_it_should_be() {
    let Some(server) = shared() else { return };
    let mut scene = Scene::new(&server, "shut_out", Profile::PointSelect, 3);
    scene.request.drive.duration_s = Some(10.0);
    let driving = scene.begin();
    scene.run(&[&format!(
        "ALTER USER {DRIVER}@localhost IDENTIFIED BY 'wrong'"
    )]);
    scene.kill_connections();
    let driven = driving.end().expect("what was measured is a result");
    assert_window(&driven, &scene.request);
    assert!(of_kind(&driven, "connection") > 0, "{:?}", driven.errors);
}

#[test]
fn too_many_connections_end_a_drive_that_begins_and_are_counted_in_one_that_runs() {
    let Some(server) = shared() else { return };
    let mut scene = Scene::new(&server, "connections", Profile::PointSelect, 14);
    let mut driving = scene.begin_apart();
    // The least that MariaDB takes; those that are connected stay.
    scene.run(&[
        "SET GLOBAL max_connections = 10",
        &format!("KILL HARD CONNECTION USER {DRIVER}@localhost"),
    ]);
    driving.wait_for_errors(14 + 4); // all are killed, and some refused
    scene.run(&["SET GLOBAL max_connections = 151"]);
    scene.wait_until_they_go_on("Com_stmt_execute");
    let driven = driving.result();
    assert!(count(&driven, "1040") >= 4, "{:?}", driven.errors);
    assert_eq!(of_kind(&driven, "other"), 0, "{:?}", driven.errors);
    scene.run(&["SET GLOBAL max_connections = 10"]);
    scene.request.drive.virtual_users = 20;
    let refused = try_drive(&scene.request).expect_err("not all get in");
    scene.run(&["SET GLOBAL max_connections = 151"]);
    let LoadError::Connect { source, .. } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(source.code, "1040");
}

#[test]
fn a_server_that_hangs_for_a_while_leaves_the_window_exact_and_its_users_unharmed() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut scene = Scene::new(&server, "hanging", Profile::ReadWrite, 4);
    scene.request.drive.duration_s = Some(12.0);
    let mut driving = scene.begin();
    scene.wait_for_more("Com_commit");
    server.freeze();
    driving.wait_until_finishing();
    server.thaw();
    let driven = driving.end().expect("it ends well");
    assert_window(&driven, &scene.request);
    let others = driven
        .errors
        .iter()
        .filter(|error| error.kind != "deadlock");
    assert_eq!(others.count(), 0, "{:?}", driven.errors);
    assert!(completed(&driven) > 0);
}

#[test]
fn a_server_that_hangs_for_good_is_left_when_users_should_have_finished() {
    let Some(server) = Server::start() else {
        return;
    };
    let scene = Scene::new(&server, "hung", Profile::ReadWrite, 4);
    let driving = scene.begin_apart_with(&apart::IMPATIENT);
    scene.wait_for_more("Com_commit");
    server.freeze();
    let driven = driving.result();
    assert!(completed(&driven) > 0);
    assert!(scene.directory.path().join("result.json").exists());
}

#[test]
fn no_figure_depends_on_the_servers_clock() {
    let Some(server) = shared() else { return };
    let scene = Scene::new(&server, "clocks", Profile::ReadWrite, 2);
    let year = |expected| {
        let year = number(&scene.request.drive.endpoint, "SELECT YEAR(NOW())");
        assert_eq!(
            year, expected,
            "the server's clock is where the test put it"
        );
    };
    // Sessions of accounts that do not administrate begin with this: 1971, and from the middle of the window 2035.
    let at = |time: i64| {
        scene.run(&[&format!(
            "SET GLOBAL init_connect = 'SET timestamp = {time}'"
        )]);
    };
    at(40_000_000);
    year(1971);
    let before_ns = monotonic_ns();
    let mut driving = scene.begin_apart();
    at(2_070_000_000);
    scene.kill_connections();
    year(2035);
    driving.wait_for_errors(2);
    scene.wait_until_they_go_on("Com_commit");
    let driven = driving.result();
    let after_ns = monotonic_ns();
    scene.run(&["SET GLOBAL init_connect = ''"]);
    assert!(before_ns < driven.window.start_ns && driven.window.end_ns < after_ns);
    let latencies = crate::support::histograms::merged(scene.directory.path(), "latency.hlog");
    assert_eq!(latencies.len(), completed(&driven));
    let longest_ns = u64::try_from(after_ns - before_ns).expect("time goes on");
    assert!(
        latencies.max() <= longest_ns + longest_ns / 1_000,
        "no latency of years"
    );
    assert!(after_ns - before_ns < 600 * SECOND_NS);
}

#[test]
fn a_server_that_closes_at_the_commit_has_committed_nothing_and_the_result_says_so() {
    let Some(server) = shared() else { return };
    let mut scene = Scene::new(&server, "cut", Profile::ReadWrite, 1);
    (
        scene.request.drive.transactions,
        scene.request.drive.duration_s,
    ) = (Some(40), None);
    scene.request.mix.delete_inserts = 0; // these would give `k` anew
    let sum_of_k = "SELECT SUM(k) FROM (SELECT k FROM sbtest1 UNION ALL SELECT k FROM sbtest2 UNION ALL SELECT k FROM sbtest3) AS t";
    let before = number(&scene.admin, sum_of_k);
    let Endpoint::Mysql { socket, .. } = &mut scene.request.drive.endpoint else {
        panic!("a MySQL endpoint")
    };
    let proxy = Proxy::start(socket.as_deref().expect("a socket"), 5);
    *socket = Some(proxy.socket());
    let driven = drive(&scene.request);
    // Every fifth commit never reaches the server.
    let outcomes = driven.transactions["read_write"];
    assert_eq!((outcomes.committed, outcomes.failed), (32, 8));
    assert_eq!(count(&driven, "connection_lost"), 8, "{:?}", driven.errors);
    assert_eq!(proxy.cuts(), 8);
    // Each transaction adds one to one `k`.
    assert_eq!(number(&scene.admin, sum_of_k) - before, 32);
}

#[test]
fn a_full_disk_is_counted_and_inserts_go_on_once_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let Some(server) = disk.server() else { return };
    let mut scene = Scene::new(&server, "full", Profile::Insert, 2);
    scene.request.tables = 1;
    scene.request.drive.arrivals = Arrivals::default(); // room is taken by the megabyte
    disk.fill_and_free(scene.begin_apart(), &scene.admin, "1114");
}
