//! Transfers between accounts as a script whose statements are sent together: whatever breaks, no half of one may stay.

use std::path::Path;

use fairtrial_protocol::load::{Driven, Endpoint, Outcomes};
use fairtrial_protocol::oltp::{Distribution, OltpDrive, Profile};
use fairtrial_protocol::script::{
    Draw, Scope, ScriptDrive, ScriptFill, ScriptLoad, ScriptParameter, ScriptTransaction,
};

use super::number;
use super::oltp::{SPECIAL, drive, load, loading, parameters};
use super::script::{driving, statement};
use super::sysbench::{Counts, difference};

/// Few enough that users meet.
pub const ACCOUNTS: u32 = 12;

/// Statements of a transfer with its beginning and its commit.
pub const STATEMENTS: u64 = 6;

fn drawn(name: &str, draw: Draw) -> ScriptParameter {
    ScriptParameter {
        name: name.into(),
        draw,
    }
}

fn account(name: &str) -> ScriptParameter {
    let draw = Draw::Integer {
        low: 1,
        high: ACCOUNTS.into(),
        distribution: Distribution::Uniform {},
    };
    drawn(name, draw)
}

/// Makes accounts of nothing and an empty list of transfers.
pub fn make(endpoint: &Endpoint) {
    let loading = ScriptLoad {
        endpoint: endpoint.clone(),
        create: vec![
            "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER DEFAULT 0 NOT NULL, \
             left_from INTEGER DEFAULT 0 NOT NULL)"
                .into(),
            "CREATE TABLE transfer (id BIGINT PRIMARY KEY, taken INTEGER NOT NULL)".into(),
        ],
        fill: vec![ScriptFill {
            table: "account".into(),
            rows: ACCOUNTS.into(),
            columns: vec![drawn("id", Draw::Sequence { first: 1 })],
        }],
        finish: Vec::new(),
        seed: 1,
        threads: 1,
    };
    fairtrial_load::load_script(&loading, &mut Vec::new()).expect("the accounts are made");
}

/// One unit out of an account and into another, where two may meet, then noted: work after a deadlock.
pub fn transfer(scope: Scope) -> ScriptTransaction {
    let add = "UPDATE account SET balance = balance + 1 WHERE id = ?";
    let take = "UPDATE account SET balance = balance - 1, left_from = left_from + 1 WHERE id = ?";
    ScriptTransaction {
        name: "transfer".into(),
        weight: 1.0,
        scope,
        rollback_share: 0.0,
        parameters: vec![
            account("from"),
            account("to"),
            drawn("number", Draw::Sequence { first: 1 }),
        ],
        statements: vec![
            statement("SELECT balance FROM account WHERE id = ?", &["from"]),
            statement(take, &["from"]),
            statement(add, &["to"]),
            statement("INSERT INTO transfer VALUES (?, 1)", &["number"]),
        ],
    }
}

/// A drive of transfers by users that meet, sent together.
pub fn transfers(endpoint: Endpoint, directory: &Path) -> ScriptDrive {
    let mut request = driving(endpoint, directory, vec![transfer(Scope::ReadWrite)]);
    request.pipelining = true;
    (request.drive.virtual_users, request.drive.retries) = (8, 1_000);
    request
}

pub fn run(request: &ScriptDrive) -> Driven {
    fairtrial_load::drive_script(request, &mut Vec::new()).expect("the drive ends")
}

pub fn outcomes(driven: &Driven) -> Outcomes {
    driven.transactions["transfer"]
}

/// Fails if half a transfer stayed: what one account lost, another has. Gives the number of transfers.
pub fn assert_whole(endpoint: &Endpoint) -> u64 {
    let sum = number(endpoint, "SELECT SUM(balance) FROM account");
    assert_eq!(sum, 0, "what one account lost, another has");
    let noted = number(endpoint, "SELECT SUM(taken) FROM transfer");
    let taken = number(endpoint, "SELECT SUM(left_from) FROM account");
    assert_eq!(noted, taken, "what was taken was noted");
    let transfers = number(endpoint, "SELECT COUNT(*) FROM transfer");
    u64::try_from(transfers).expect("a count")
}

/// What 60 transactions of a profile cost the server, by counters of the test's own, sent together or one by one.
pub fn cost(
    endpoint: &Endpoint,
    profile: Profile,
    counters: &impl Fn() -> Counts,
    change: impl Fn(&mut OltpDrive),
) -> (Counts, Driven) {
    let measured = |transactions| {
        load(&loading(endpoint.clone(), profile, SPECIAL));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut request = parameters(endpoint.clone(), directory.path(), profile, transactions);
        request.mix.index_updates = 3;
        change(&mut request);
        let before = counters();
        let driven = drive(&request);
        assert_eq!(driven.errors, [], "{profile:?}");
        (difference(&counters(), &before), driven)
    };
    // What a session does once does not count.
    let (few, _) = measured(5);
    let (many, driven) = measured(65);
    (difference(&many, &few), driven)
}

/// Fails unless a profile costs the server the same whether or not its statements are sent together, with and without
/// transactions.
pub fn assert_same_cost(endpoint: &Endpoint, profile: Profile, counters: &impl Fn() -> Counts) {
    for skip in [false, true] {
        let costs = [false, true].map(|pipelining| {
            let change = |request: &mut OltpDrive| {
                (request.pipelining, request.skip_transactions) = (pipelining, skip);
            };
            cost(endpoint, profile, counters, change)
        });
        let [(apart, by_one), (together, at_once)] = costs;
        assert_eq!(together, apart, "{profile:?}, skip_transactions {skip}");
        assert!(apart.values().any(|count| *count >= 60), "{apart:?}");
        assert_eq!(at_once.drawn, by_one.drawn, "the same statements and rows");
        assert_eq!(at_once.transactions, by_one.transactions);
    }
}
