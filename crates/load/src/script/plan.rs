//! A script made ready for drawing: names become places.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fairtrial_protocol::script::{Scope, ScriptDrive, ScriptTransaction};

use super::draw::{ValueSource, sums};
use super::{lasting, refused};
use crate::driver::{AccessMode, StatementId, pipeline};
use crate::error::LoadError;

/// What all users of a drive share.
#[derive(Debug)]
pub struct ScriptPlan {
    /// The types of transactions, as many as `sums`.
    pub transactions: Vec<TransactionPlan>,
    /// Weights up to each type's own.
    pub sums: Vec<f64>,
    /// How far sequences had come when this drive began: probes of a search use one database after the other.
    pub first_number: i64,
    /// How far they have come, told by each user at its end.
    pub numbers: Arc<AtomicI64>,
    /// Virtual users.
    pub users: u32,
    /// Seed of the run.
    pub seed: u64,
}

/// One type of transaction.
#[derive(Debug)]
pub struct TransactionPlan {
    /// Its name in results.
    pub name: &'static str,
    /// What counts those that were drawn to end with a rollback.
    pub rollbacks: &'static str,
    /// How it begins; `None` if each statement is for itself.
    pub access: Option<AccessMode>,
    /// Share of them that end with a rollback.
    pub rollback_share: f64,
    /// Where values come from: as many slots.
    pub sources: Vec<ValueSource>,
    /// Slots in all: drawn first, then taken from rows.
    pub slots: usize,
    /// What it does.
    pub steps: Vec<StatementPlan>,
    /// The same in the pieces it is sent in; one whose statements go one by one, if nothing is pipelined.
    pub pieces: Vec<Piece>,
}

/// Consecutive statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which.
    pub steps: Range<usize>,
    /// Whether they go out before the first is answered.
    pub is_pipelined: bool,
}

/// One statement.
#[derive(Debug)]
pub struct StatementPlan {
    /// Its place among all statements.
    pub id: StatementId,
    /// Its text.
    pub sql: String,
    /// Slots of its values.
    pub values: Vec<usize>,
    /// Rows it must give or touch.
    pub rows: Option<u64>,
    /// Slots that its first row's columns go to.
    pub take: Vec<usize>,
    /// Whether it gives rows: the system says so before the first user begins.
    pub gives_rows: bool,
}

impl ScriptPlan {
    /// The plan of a drive, whose sequences go on from `numbers`.
    pub fn new(parameters: &ScriptDrive, numbers: &Arc<AtomicI64>) -> Result<Self, LoadError> {
        let weights = parameters.transactions.iter().map(|each| each.weight);
        let mut transactions = planned(&parameters.transactions)?;
        if parameters.pipelining {
            pipeline::check(&parameters.drive.endpoint)?;
            for transaction in &mut transactions {
                transaction.pieces = pieces(transaction);
            }
            if !transactions.iter().any(TransactionPlan::is_pipelined) {
                return Err(LoadError::parameter(
                    "pipelining",
                    "no transaction has two statements that can be sent together",
                ));
            }
        }
        Ok(Self {
            transactions,
            sums: sums(weights)?,
            first_number: numbers.load(Ordering::Acquire),
            numbers: Arc::clone(numbers),
            users: parameters.drive.users_of_all(),
            seed: parameters.drive.seed,
        })
    }
}

impl TransactionPlan {
    /// Whether anything of it goes out with something else.
    fn is_pipelined(&self) -> bool {
        let mut pieces = self.pieces.iter().filter(|piece| piece.is_pipelined);
        pieces.any(|piece| self.access.is_some() || piece.steps.len() > 1)
    }
}

/// What a statement begins with that can be sent together with others: it reads or changes rows, and nothing else. A
/// procedure or a change of a table may commit what comes before it, though that has failed in part.
const PIPELINED: [&str; 7] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "WITH",
];

/// What can be sent together. A statement that later ones take values from goes alone; where each is for itself, so
/// does none after one whose rows are counted, which must not run if they differ.
fn pieces(transaction: &TransactionPlan) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut is_open = false;
    for (place, step) in transaction.steps.iter().enumerate() {
        let word = step.sql.split(|letter: char| !letter.is_ascii_alphabetic());
        let word = word.take(1).next().unwrap_or_default();
        let is_known = PIPELINED
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known));
        let is_pipelined = is_known && step.take.is_empty();
        match pieces.last_mut() {
            Some(last) if is_open && is_pipelined => last.steps.end = place + 1,
            _ => pieces.push(Piece {
                steps: place..place + 1,
                is_pipelined,
            }),
        }
        is_open = is_pipelined && (transaction.access.is_some() || step.rows.is_none());
    }
    pieces
}

/// The types of transactions; one at least.
pub fn planned(transactions: &[ScriptTransaction]) -> Result<Vec<TransactionPlan>, LoadError> {
    if transactions.is_empty() {
        return Err(refused("no transaction".into()));
    }
    let mut next = 0;
    transactions
        .iter()
        .map(|each| plan(each, &mut next))
        .collect()
}

fn plan(transaction: &ScriptTransaction, next: &mut usize) -> Result<TransactionPlan, LoadError> {
    let name = &transaction.name;
    let access = match transaction.scope {
        Scope::ReadWrite => Some(AccessMode::ReadWrite),
        Scope::ReadOnly => Some(AccessMode::ReadOnly),
        Scope::None => None,
    };
    let share = transaction.rollback_share;
    if !(0.0..=1.0).contains(&share) || (share > 0.0 && access.is_none()) {
        return Err(refused(format!(
            "{name} cannot roll back a share of {share}"
        )));
    }
    if transaction.statements.is_empty() {
        return Err(refused(format!("{name} has no statements")));
    }
    let mut names: Vec<&str> = Vec::new();
    let mut sources = Vec::with_capacity(transaction.parameters.len());
    for parameter in &transaction.parameters {
        names.push(&parameter.name);
        sources.push(ValueSource::new(&parameter.draw)?);
    }
    let mut steps = Vec::with_capacity(transaction.statements.len());
    for statement in &transaction.statements {
        let slot = |value: &String| {
            let known = names.iter().rposition(|name| name == value);
            known.ok_or_else(|| refused(format!("{name} gives `{value}` no value")))
        };
        let values = statement
            .values
            .iter()
            .map(slot)
            .collect::<Result<_, _>>()?;
        let first = names.len();
        names.extend(statement.take.iter().map(String::as_str));
        steps.push(StatementPlan {
            id: StatementId(*next),
            sql: statement.sql.clone(),
            values,
            rows: statement.rows,
            take: (first..names.len()).collect(),
            gives_rows: false,
        });
        *next += 1;
    }
    Ok(TransactionPlan {
        name: lasting(name),
        rollbacks: lasting(&format!("{name}.rollback")),
        access,
        rollback_share: share,
        sources,
        slots: names.len(),
        pieces: vec![Piece {
            steps: 0..steps.len(),
            is_pipelined: false,
        }],
        steps,
    })
}
