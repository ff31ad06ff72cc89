//! A small shop as a script.

use std::path::Path;

use fairtrial_protocol::load::{Endpoint, Loaded};
use fairtrial_protocol::oltp::Distribution;
use fairtrial_protocol::script::{
    Draw, Letters, Preflighted, Scope, ScriptDrive, ScriptFill, ScriptLoad, ScriptParameter,
    ScriptPreflight, ScriptStatement, ScriptTransaction,
};

use super::alone;

pub const CUSTOMERS: u32 = 6_000;

fn parameter(name: &str, draw: Draw) -> ScriptParameter {
    ScriptParameter {
        name: name.into(),
        draw,
    }
}

fn customer() -> ScriptParameter {
    let draw = Draw::Integer {
        low: 1,
        high: CUSTOMERS.into(),
        distribution: Distribution::Uniform {},
    };
    parameter("customer", draw)
}

/// An amount of money.
fn amount(name: &str) -> ScriptParameter {
    let draw = Draw::Decimal {
        low_units: 1_000,
        high_units: 2_000,
        scale: 2,
        distribution: Distribution::Uniform {},
    };
    parameter(name, draw)
}

pub fn statement(sql: &str, values: &[&str]) -> ScriptStatement {
    ScriptStatement {
        sql: sql.into(),
        values: values.iter().map(ToString::to_string).collect(),
        rows: None,
        take: Vec::new(),
    }
}

pub fn loading(endpoint: Endpoint, seed: u64) -> ScriptLoad {
    let name = Draw::Text {
        shortest: 4,
        longest: 12,
        letters: Letters::Alphanumeric,
    };
    let words = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    ScriptLoad {
        endpoint,
        create: words(&[
            "CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(12) NOT NULL, \
             balance DECIMAL(12,2) NOT NULL, visits INTEGER DEFAULT 0 NOT NULL)",
            "CREATE TABLE purchase (id BIGINT PRIMARY KEY, customer INTEGER NOT NULL, name VARCHAR(12) NOT NULL)",
        ]),
        fill: vec![ScriptFill {
            table: "customer".into(),
            rows: CUSTOMERS.into(),
            columns: vec![
                parameter("id", Draw::Sequence { first: 1 }),
                parameter("name", name),
                amount("balance"),
            ],
        }],
        finish: words(&[
            "CREATE INDEX purchase_of_customer ON purchase (customer)",
            "CREATE TABLE computed (id INTEGER PRIMARY KEY, owed DECIMAL(12,2) NOT NULL)",
            "INSERT INTO computed SELECT id, balance FROM customer",
        ]),
        seed,
        threads: 2,
    }
}

pub fn load(parameters: &ScriptLoad) -> Loaded {
    let loaded = fairtrial_load::load_script(parameters, &mut Vec::new());
    let loaded = loaded.expect("the tables are made");
    assert_eq!(loaded.rows["customer"], u64::from(CUSTOMERS));
    loaded
}

/// Reads a name, counts a visit and keeps the name; a fifth of them think better of it.
pub fn order(weight: f64) -> ScriptTransaction {
    let mut read = statement("SELECT name FROM customer WHERE id = ?", &["customer"]);
    read.rows = Some(1);
    read.take = vec!["name".into()];
    let mut visit = statement(
        "UPDATE customer SET visits = visits + 1 WHERE id = ?",
        &["customer"],
    );
    visit.rows = Some(1);
    let mut keep = statement(
        "INSERT INTO purchase (id, customer, name) VALUES (?, ?, ?)",
        &["purchase", "customer", "name"],
    );
    keep.rows = Some(1);
    ScriptTransaction {
        name: "order".into(),
        weight,
        scope: Scope::ReadWrite,
        rollback_share: 0.2,
        parameters: vec![
            customer(),
            parameter("purchase", Draw::Sequence { first: 1 }),
        ],
        statements: vec![read, visit, keep],
    }
}

/// One statement by itself.
pub fn pay(weight: f64) -> ScriptTransaction {
    let mut pay = statement(
        "UPDATE customer SET balance = balance + ? WHERE id = ?",
        &["amount", "customer"],
    );
    pay.rows = Some(1);
    ScriptTransaction {
        name: "pay".into(),
        weight,
        scope: Scope::None,
        rollback_share: 0.0,
        parameters: vec![customer(), amount("amount")],
        statements: vec![pay],
    }
}

/// A drive of 400 transactions by one user.
pub fn driving(
    endpoint: Endpoint,
    directory: &Path,
    transactions: Vec<ScriptTransaction>,
) -> ScriptDrive {
    ScriptDrive {
        drive: alone(endpoint, directory, 400),
        transactions,
        pipelining: false,
    }
}

pub fn preflight(endpoint: Endpoint, transactions: Vec<ScriptTransaction>) -> Preflighted {
    let request = ScriptPreflight {
        endpoint,
        transactions,
    };
    fairtrial_load::preflight_script(&request).expect("the system answers")
}
