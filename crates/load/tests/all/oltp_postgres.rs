//! The OLTP family on a real, private PostgreSQL; skipped, and said so, where none is installed.

use crate::support::oltp::{
    PROFILES, SPECIAL, TABLE_SIZE, drive, load, loading, parameters, tables,
};
use crate::support::postgres::Server;
use crate::support::system::System as _;
use crate::support::{completed, sql};
use fairtrial_protocol::oltp::{OltpCheck, Profile, Protocol};

#[test]
fn every_profile_runs_prepared_and_as_text_and_leaves_tables_that_pass_their_check() {
    let Some(server) = Server::common() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let endpoint = server.endpoint("profiles");
    for profile in PROFILES {
        load(&loading(endpoint.clone(), profile, SPECIAL));
        for (seed, protocol) in [(11, Protocol::Prepared), (12, Protocol::Text)] {
            let mut request = parameters(endpoint.clone(), directory.path(), profile, 30);
            (request.drive.seed, request.protocol) = (seed, protocol);
            let driven = drive(&request);
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
