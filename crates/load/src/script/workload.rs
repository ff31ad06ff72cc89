//! A script as the drive sees it: its transactions as types, its statements prepared on every connection.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use fairtrial_protocol::script::ScriptDrive;

use super::draw::ValueSource;
use super::plan::ScriptPlan;
use super::preflight;
use super::user::ScriptUser;
use crate::driver::Connection;
use crate::driver::dialect::Dialect;
use crate::error::LoadError;
use crate::workload::{Counts, Unfit, Workload};

/// What all users of a drive share.
pub struct Script {
    plan: Arc<ScriptPlan>,
    types: Vec<&'static str>,
}

impl Script {
    /// The workload of these parameters, whose sequences go on from `numbers`.
    pub fn new(parameters: &ScriptDrive, numbers: &Arc<AtomicI64>) -> Result<Self, LoadError> {
        let plan = ScriptPlan::new(parameters, numbers)?;
        Ok(Self {
            types: plan.transactions.iter().map(|each| each.name).collect(),
            plan: Arc::new(plan),
        })
    }
}

impl Workload for Script {
    type User = ScriptUser;

    fn types(&self) -> &[&'static str] {
        &self.types
    }

    fn statements(&self, _dialect: Dialect) -> Vec<String> {
        let steps = self.plan.transactions.iter().flat_map(|each| &each.steps);
        steps.map(|step| step.sql.clone()).collect()
    }

    /// Prepares every statement: whether it gives rows, and that the system takes it at all.
    async fn preflight<C: Connection>(
        &mut self,
        connection: &mut C,
        dialect: Dialect,
    ) -> Result<(), Unfit> {
        let Some(plan) = Arc::get_mut(&mut self.plan) else {
            return Ok(()); // users share it already, so it was looked at before
        };
        for transaction in &mut plan.transactions {
            if dialect == Dialect::Sqlite {
                let sources = std::mem::take(&mut transaction.sources).into_iter();
                transaction.sources = sources.map(ValueSource::without_decimals).collect();
            }
            for (number, step) in (1..).zip(&mut transaction.steps) {
                let looked = preflight::look(connection, &transaction.sources, step).await;
                looked.map_err(|source| {
                    let doing = format!("preparing statement {number} of {}", transaction.name);
                    Unfit::of(doing, source)
                })?;
            }
        }
        Ok(())
    }

    fn user(&self, number: u32, _dialect: Dialect) -> ScriptUser {
        ScriptUser::new(Arc::clone(&self.plan), number)
    }

    fn constants(&self) -> Counts {
        Counts::new()
    }
}
