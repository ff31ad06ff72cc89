//! The family as the drive sees it: one transaction type, the profile's, and the tables as its scale.

use std::sync::Arc;

use fairtrial_protocol::oltp::{Mix, OltpDrive, Profile, Protocol};

use super::keys::{self, Keys};
use super::plan::OltpPlan;
use super::population::validate;
use super::schema;
use super::statements::{TableStatement, groups, in_transaction};
use super::user::OltpUser;
use crate::driver::Connection;
use crate::driver::dialect::Dialect;
use crate::driver::pipeline;
use crate::error::LoadError;
use crate::workload::{Counts, Unfit, Workload};

/// More statements of a kind in a transaction than this are a mistake; as many values fit one statement.
const STATEMENTS_LIMIT: u32 = 10_000;

/// What all users of a drive share.
pub struct Oltp {
    plan: Arc<OltpPlan>,
    types: [&'static str; 1],
}

impl Oltp {
    /// The workload of these parameters.
    pub fn new(parameters: &OltpDrive) -> Result<Self, LoadError> {
        let OltpDrive { profile, mix, .. } = *parameters;
        validate(parameters.tables, parameters.table_size)?;
        keys::validate(&parameters.distribution)?;
        check_mix(parameters)?;
        check_pipelining(parameters)?;
        let groups = groups(profile, &mix);
        let mut prepared: Vec<TableStatement> = Vec::new();
        if parameters.protocol == Protocol::Prepared {
            prepared = groups
                .iter()
                .flat_map(|(act, _)| act.statements())
                .collect();
        }
        let last = parameters.table_size.into();
        let plan = OltpPlan {
            profile,
            groups,
            mix,
            tables: parameters.tables,
            table_size: parameters.table_size,
            users: parameters.drive.users_of_all(),
            keys: Keys::new(&parameters.distribution, 1, last),
            distribution: parameters.distribution,
            in_transaction: in_transaction(profile) && !parameters.skip_transactions,
            protocol: parameters.protocol,
            pipelining: parameters.pipelining,
            seed: parameters.drive.seed,
            prepared,
            last_keys: Vec::new(),
        };
        Ok(Self {
            plan: Arc::new(plan),
            types: [profile.name()],
        })
    }

    fn looking_at(&self, table: &str) -> String {
        let tables = self.plan.tables;
        format!("looking at {table}, one of the {tables} tables asked for,")
    }
}

fn check_mix(parameters: &OltpDrive) -> Result<(), LoadError> {
    let refuse = |field, problem: String| Err(LoadError::Parameter { field, problem });
    let OltpDrive { profile, mix, .. } = parameters;
    let Mix {
        point_selects,
        simple_ranges,
        sum_ranges,
        order_ranges,
        distinct_ranges,
        range_size,
        index_updates,
        non_index_updates,
        delete_inserts,
        random_points,
        random_ranges,
        random_range_delta: _,
    } = *mix;
    let counts = [
        point_selects,
        simple_ranges,
        sum_ranges,
        order_ranges,
        distinct_ranges,
        index_updates,
        non_index_updates,
        delete_inserts,
    ];
    if counts
        .into_iter()
        .chain([random_points, random_ranges])
        .any(|count| count > STATEMENTS_LIMIT)
    {
        return refuse("mix", format!("no count may exceed {STATEMENTS_LIMIT}"));
    }
    if range_size == 0 || random_points == 0 || random_ranges == 0 {
        return refuse(
            "mix",
            "range_size, random_points and random_ranges must be at least 1".into(),
        );
    }
    let own = matches!(profile, Profile::Insert | Profile::BulkInsert);
    if !own && groups(*profile, mix).is_empty() {
        return refuse(
            "mix",
            format!("a transaction of {} would be empty", profile.name()),
        );
    }
    let random = matches!(
        profile,
        Profile::SelectRandomPoints | Profile::SelectRandomRanges
    );
    if random && parameters.tables != 1 {
        return refuse("tables", format!("must be 1 for {}", profile.name()));
    }
    let users = parameters.drive.users_of_all();
    if random && users > parameters.table_size {
        return refuse(
            "virtual_users",
            "each needs a row of its own part of the table".into(),
        );
    }
    if *profile == Profile::BulkInsert && users > parameters.tables {
        let problem = format!(
            "{users} users of bulk_insert need a table each, not {}",
            parameters.tables
        );
        return refuse("tables", problem);
    }
    Ok(())
}

/// A study that asks for pipelining is not to be told figures without.
fn check_pipelining(parameters: &OltpDrive) -> Result<(), LoadError> {
    if !parameters.pipelining {
        return Ok(());
    }
    pipeline::check(&parameters.drive.endpoint)?;
    let refuse = |problem: String| Err(LoadError::parameter("pipelining", problem));
    if parameters.protocol == Protocol::Text {
        return refuse("only prepared statements are pipelined, and the protocol is text".into());
    }
    let groups = groups(parameters.profile, &parameters.mix);
    let statements = groups
        .iter()
        .map(|(act, count)| act.statements().len() * *count as usize);
    if statements.sum::<usize>() < 2 {
        let name = parameters.profile.name();
        return refuse(format!(
            "a transaction of {name} has one statement, so there is nothing to send with it"
        ));
    }
    Ok(())
}

impl Workload for Oltp {
    type User = OltpUser;

    fn types(&self) -> &[&'static str] {
        &self.types
    }

    fn statements(&self, dialect: Dialect) -> Vec<String> {
        let plan = &self.plan;
        let of = |statement: &TableStatement| {
            let statement = *statement;
            (1..=plan.tables)
                .map(move |table| dialect.render(&statement.template(table, &plan.mix)))
        };
        plan.prepared.iter().flat_map(of).collect()
    }

    /// Looks at the end of every table's primary key: cheap, and it leaves the rows where they are.
    async fn preflight<C: Connection>(
        &mut self,
        connection: &mut C,
        _dialect: Dialect,
    ) -> Result<(), Unfit> {
        let mut last_keys = Vec::with_capacity(self.plan.tables as usize);
        for table in 1..=self.plan.tables {
            let name = schema::name(table);
            let last_key = connection
                .number(&format!("SELECT MAX(id) FROM {name}"))
                .await
                .map_err(|source| Unfit::of(self.looking_at(&name), source))?
                .unwrap_or_default();
            if !self.plan.fits(last_key) {
                return Err(Unfit::Tables(LoadError::Scale {
                    expected: self.plan.table_size.into(),
                    count: last_key,
                    unit: format!("rows in {name}"),
                }));
            }
            last_keys.push(last_key);
        }
        if let Some(plan) = Arc::get_mut(&mut self.plan) {
            plan.last_keys = last_keys;
        }
        Ok(())
    }

    fn user(&self, number: u32, dialect: Dialect) -> OltpUser {
        OltpUser::new(Arc::clone(&self.plan), number, dialect)
    }

    fn constants(&self) -> Counts {
        Counts::new()
    }
}
