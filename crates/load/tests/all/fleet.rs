//! Several clients of one drive: they begin when they are told, and together they do what one would.

use std::path::Path;

use fairtrial_load::LoadError;
use fairtrial_protocol::load::{
    Arrivals, Drive, Endpoint, FleetShare, Percentile, Search, Spacing,
};
use fairtrial_protocol::oltp::{Distribution, OltpDrive, Profile};

use crate::noop::NoopThread;
use crate::support::oltp;
use crate::support::together::together;

const CLIENTS: u32 = 2;

fn drive(server: &NoopThread, directory: &Path, client: u32) -> OltpDrive {
    let endpoint = Endpoint::mysql_at(&server.socket(), "anyone", "any");
    let out = directory.join(client.to_string());
    std::fs::create_dir(&out).expect("a directory");
    let alone = oltp::parameters(endpoint, &out, Profile::PointSelect, 1);
    OltpDrive {
        // What the server's canned answer says of any table.
        table_size: 1,
        tables: 1,
        distribution: Distribution::Uniform {},
        drive: Drive {
            virtual_users: 1,
            transactions: None,
            duration_s: Some(0.5),
            arrivals: Arrivals::Open {
                rate_per_s: 200.0,
                spacing: Spacing::Constant,
            },
            fleet: Some(FleetShare {
                client,
                clients: CLIENTS,
                users: CLIENTS,
                user_numbers: vec![client],
                start_path: out.join("start").to_string_lossy().into(),
            }),
            ..alone.drive
        },
        ..alone
    }
}

fn share(parameters: &OltpDrive) -> &FleetShare {
    parameters.drive.fleet.as_ref().expect("one of several")
}

#[test]
fn clients_begin_at_the_instant_they_are_told_and_share_the_arrivals() {
    let server = NoopThread::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let requests = [0, 1].map(|client| drive(&server, directory.path(), client));
    let (start_ns, driven) = together(&requests, share, fairtrial_load::drive_oltp);
    for each in &driven {
        let window = each.window;
        assert_eq!(
            (window.start_ns, window.end_ns),
            (start_ns, start_ns + 500_000_000)
        );
        assert_eq!(each.arrivals.expect("an open loop").offered, 50);
    }
}

#[test]
fn a_share_that_nobody_could_add_up_is_refused() {
    let server = NoopThread::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let good = drive(&server, directory.path(), 1);
    let refused = |parameters: Drive, about: &str| {
        let parameters = OltpDrive {
            drive: parameters,
            ..good.clone()
        };
        let error = oltp::try_drive(&parameters).expect_err("refused");
        assert!(matches!(error, LoadError::Parameter { .. }), "{error}");
        assert!(error.to_string().contains(about), "{error}");
    };
    let shared = |share: FleetShare| Drive {
        fleet: Some(share),
        ..good.drive.clone()
    };
    let share = share(&good).clone();
    refused(
        shared(FleetShare {
            client: CLIENTS,
            ..share.clone()
        }),
        "fleet.client",
    );
    refused(
        shared(FleetShare {
            user_numbers: vec![0, 1],
            ..share.clone()
        }),
        "one for each",
    );
    refused(
        shared(FleetShare {
            user_numbers: vec![CLIENTS],
            ..share
        }),
        "below the number of users",
    );
    refused(
        Drive {
            duration_s: None,
            transactions: Some(1),
            ..good.drive.clone()
        },
        "one window",
    );
    let search = Search {
        percentile: Percentile::P50,
        limit_s: 1.0,
        lowest_per_s: 1.0,
        highest_per_s: 2.0,
        precision: 0.5,
        window_s: 1.0,
        settle_s: 0.0,
        spacing: Spacing::Constant,
    };
    refused(
        Drive {
            duration_s: None,
            arrivals: Arrivals::Search { search },
            ..good.drive.clone()
        },
        "one client searches",
    );
}

#[test]
fn a_client_without_arrivals_left_keeps_the_window_of_all() {
    let server = NoopThread::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let requests = [0, 1].map(|client| {
        let mut parameters = drive(&server, directory.path(), client);
        parameters.drive.arrivals = Arrivals::Ramp {
            from_per_s: 100.0,
            to_per_s: 0.0,
            over_s: 0.1,
            spacing: Spacing::Constant,
        };
        parameters
    });
    let (start_ns, driven) = together(&requests, share, fairtrial_load::drive_oltp);
    for each in &driven {
        assert_eq!(each.window.end_ns, start_ns + 500_000_000);
    }
}
