//! Parameters of the OLTP family for tests.

use std::path::Path;

use fairtrial_load::LoadError;
use fairtrial_protocol::load::{Driven, Endpoint, Loaded};
use fairtrial_protocol::oltp::{Distribution, Layout, Mix, OltpDrive, OltpLoad, Profile, Protocol};

use super::alone;

pub const PROFILES: [Profile; 11] = [
    Profile::PointSelect,
    Profile::ReadOnly,
    Profile::ReadWrite,
    Profile::WriteOnly,
    Profile::UpdateIndex,
    Profile::UpdateNonIndex,
    Profile::Insert,
    Profile::Delete,
    Profile::BulkInsert,
    Profile::SelectRandomPoints,
    Profile::SelectRandomRanges,
];

/// sysbench's default.
pub const SPECIAL: Distribution = Distribution::Special {
    iterations: 12,
    hot_percent: 1,
    hot_draws_percent: 75,
};

pub const TABLE_SIZE: u32 = 1_000;

/// Tables a profile is tested on: the random ones have one only, in sysbench too.
pub fn tables(profile: Profile) -> u32 {
    match profile {
        Profile::SelectRandomPoints | Profile::SelectRandomRanges => 1,
        _ => 3,
    }
}

pub fn layout(profile: Profile) -> Layout {
    if profile == Profile::BulkInsert {
        Layout::Bulk
    } else {
        Layout::Rows
    }
}

/// What a profile's tables are loaded with.
pub fn loading(endpoint: Endpoint, profile: Profile, distribution: Distribution) -> OltpLoad {
    OltpLoad {
        endpoint,
        layout: layout(profile),
        tables: tables(profile),
        table_size: TABLE_SIZE,
        distribution,
        seed: 7,
        threads: 2,
    }
}

pub fn load(parameters: &OltpLoad) -> Loaded {
    fairtrial_load::load_oltp(parameters, &mut Vec::new()).expect("the tables load")
}

/// A drive of one user with sysbench's defaults.
pub fn parameters(
    endpoint: Endpoint,
    directory: &Path,
    profile: Profile,
    transactions: u64,
) -> OltpDrive {
    OltpDrive {
        drive: alone(endpoint, directory, transactions),
        profile,
        tables: tables(profile),
        table_size: TABLE_SIZE,
        distribution: SPECIAL,
        protocol: Protocol::Prepared,
        skip_transactions: false,
        pipelining: false,
        mix: Mix {
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            random_points: 10,
            random_ranges: 10,
            random_range_delta: 5,
        },
    }
}

pub fn drive(parameters: &OltpDrive) -> Driven {
    try_drive(parameters).expect("the drive ends")
}

pub fn try_drive(parameters: &OltpDrive) -> Result<Driven, LoadError> {
    fairtrial_load::drive_oltp(parameters, &mut Vec::new())
}
