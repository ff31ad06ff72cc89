use fairtrial_protocol::load::{Arrivals, Drive, Endpoint};
use fairtrial_protocol::oltp::Distribution;
use fairtrial_protocol::script::{
    Draw, Scope, ScriptDrive, ScriptParameter, ScriptStatement, ScriptTransaction,
};

use super::*;
use crate::error::LoadError;

fn transaction(name: &str, weight: f64, rollback_share: f64) -> ScriptTransaction {
    let parameter = |name: &str, draw| ScriptParameter {
        name: name.into(),
        draw,
    };
    ScriptTransaction {
        name: name.into(),
        weight,
        scope: Scope::ReadWrite,
        rollback_share,
        parameters: vec![
            parameter("key", Draw::Sequence { first: 1 }),
            parameter(
                "amount",
                Draw::Integer {
                    low: 1,
                    high: 1_000_000,
                    distribution: Distribution::Uniform {},
                },
            ),
        ],
        statements: vec![ScriptStatement {
            sql: "INSERT INTO t VALUES (?, ?)".into(),
            values: vec!["key".into(), "amount".into()],
            rows: None,
            take: Vec::new(),
        }],
    }
}

fn plan(transactions: Vec<ScriptTransaction>, seed: u64) -> Result<Arc<ScriptPlan>, LoadError> {
    let drive = Drive {
        endpoint: Endpoint::Sqlite {
            path: "never opened".into(),
            pragmas: [].into(),
            busy_timeout_ms: 0,
        },
        virtual_users: 3,
        seed,
        ramp_up_s: 0.0,
        ramp_up_transactions: None,
        duration_s: None,
        transactions: Some(1),
        arrivals: Arrivals::default(),
        queue_timeout_s: None,
        retries: 0,
        interval_ms: 100,
        output_directory: String::new(),
        fleet: None,
    };
    let parameters = ScriptDrive {
        drive,
        transactions,
        pipelining: false,
    };
    ScriptPlan::new(&parameters, &Arc::default()).map(Arc::new)
}

fn shop(seed: u64) -> Arc<ScriptPlan> {
    let transactions = vec![
        transaction("look", 3.0, 0.0),
        transaction("order", 1.0, 0.1),
    ];
    plan(transactions, seed).expect("a plan")
}

/// Types and values of a user's first transactions.
fn drawn(plan: &Arc<ScriptPlan>, number: u32, count: usize) -> Vec<(usize, i64, i64)> {
    let mut user = ScriptUser::new(Arc::clone(plan), number);
    let integer = |slot: &ValueBuffer| match slot.value() {
        Value::Integer(integer) => integer,
        other => panic!("{other:?}"),
    };
    (0..count)
        .map(|_| {
            let kind = user.next();
            (kind, integer(&user.slots[0]), integer(&user.slots[1]))
        })
        .collect()
}

#[test]
fn seed_and_number_determine_what_a_user_draws() {
    let first = drawn(&shop(5), 0, 50);
    assert_eq!(drawn(&shop(5), 0, 50), first);
    assert_ne!(drawn(&shop(5), 1, 50), first);
    assert_ne!(drawn(&shop(6), 0, 50), first);
}

#[test]
fn types_and_rollbacks_come_in_the_shares_asked_for() {
    let mut user = ScriptUser::new(shop(5), 0);
    for _ in 0..20_000 {
        user.next();
        user.start();
    }
    let counts = user.drawn();
    assert_eq!(counts["look"] + counts["order"], 20_000);
    // Six standard deviations: 367 of 20,000, and 127 of 5,000.
    assert!(counts["order"].abs_diff(5_000) < 367, "{counts:?}");
    assert!(counts["order.rollback"].abs_diff(500) < 127, "{counts:?}");
    assert!(!counts.contains_key("look.rollback"), "none was asked for");
}

#[test]
fn a_sequence_gives_no_number_twice_whoever_draws() {
    let plan = shop(5);
    let mut keys: Vec<i64> = (0..3)
        .flat_map(|number| drawn(&plan, number, 100))
        .map(|(_, key, _)| key)
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, (1..=300).collect::<Vec<_>>());
}

#[test]
fn another_drive_s_sequences_go_on_after_those_of_the_drive_before() {
    let first = shop(5);
    let mut user = ScriptUser::new(Arc::clone(&first), 2);
    for _ in 0..7 {
        user.next();
    }
    user.drawn();
    let begun = first.numbers.load(Ordering::Acquire);
    assert_eq!(begun, 21, "three users, seven turns");
    let next = ScriptPlan {
        first_number: begun,
        ..Arc::try_unwrap({
            drop(user);
            first
        })
        .expect("nobody else has it")
    };
    assert_eq!(drawn(&Arc::new(next), 0, 1)[0].1, 22);
}

#[test]
fn scripts_that_contradict_themselves_make_no_plan() {
    let refused = |change: fn(&mut ScriptTransaction)| {
        let mut transaction = transaction("order", 1.0, 0.0);
        change(&mut transaction);
        match plan(vec![transaction], 1) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("planned"),
        }
    };
    assert!(
        refused(|each| each.statements[0].values[0] = "keys".into())
            .contains("order gives `keys` no value")
    );
    assert!(refused(|each| each.weight = 0.0).contains("weight 0"));
    assert!(refused(|each| each.statements.clear()).contains("no statements"));
    assert!(refused(|each| each.rollback_share = 1.5).contains("a share of 1.5"));
    let alone = |each: &mut ScriptTransaction| {
        each.scope = Scope::None;
        each.rollback_share = 0.5;
    };
    assert!(refused(alone).contains("cannot roll back"));
    assert!(plan(Vec::new(), 1).is_err_and(|error| error.to_string().contains("no transaction")));
}
