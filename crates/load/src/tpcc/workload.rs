//! TPC-C as the drive sees it: a terminal per user, five types of transactions, the warehouses as its scale.

use fairtrial_protocol::clock::Reading;
use fairtrial_protocol::load::{Endpoint, TpccDrive};

use super::constants::Constants;
use super::inputs::{Inputs, Kind, Terminal, TerminalConstants};
use super::{procedures, statements, transactions};
use crate::calendar;
use crate::driver::dialect::Dialect;
use crate::driver::{Connection, DriverError};
use crate::error::{LoadError, require};
use crate::workload::{Counts, TransactionEnd, Unfit, User, Workload};

/// What all terminals of a drive share.
pub struct Tpcc {
    site: TerminalConstants,
    seed: u64,
    think_time_scale: f64,
    procedures: bool,
    /// Whether other clients drive the same database.
    one_of_several: bool,
}

impl Tpcc {
    /// The workload of these parameters.
    pub fn new(parameters: &TpccDrive) -> Result<Self, LoadError> {
        let scale = parameters.think_time_scale;
        require(
            "warehouses",
            parameters.warehouses > 0,
            "must be at least 1",
        )?;
        let is_embedded = matches!(parameters.drive.endpoint, Endpoint::Sqlite { .. });
        require(
            "procedures",
            !(parameters.procedures && is_embedded),
            "SQLite has no stored procedures",
        )?;
        require(
            "warehouses",
            !(parameters.procedures && parameters.warehouses > procedures::LARGEST_WAREHOUSE),
            "must be at most 999999 with procedures",
        )?;
        require(
            "think_time_scale",
            (0.0..1e9).contains(&scale),
            "must be a number from 0 to below 1e9",
        )?;
        Ok(Self {
            site: TerminalConstants {
                warehouses: parameters.warehouses.into(),
                constants: Constants::draw(parameters.drive.seed, parameters.load_seed),
                all_warehouses: parameters.all_warehouses,
            },
            seed: parameters.drive.seed,
            think_time_scale: scale,
            procedures: parameters.procedures,
            one_of_several: parameters.drive.fleet.is_some(),
        })
    }

    /// The same with the run constants of other parameters: probes of one search are one run, whatever their seeds.
    #[must_use]
    pub fn with_constants_of(mut self, run: &TpccDrive) -> Self {
        self.site.constants = Constants::draw(run.drive.seed, run.load_seed);
        self
    }
}

impl Workload for Tpcc {
    type User = TerminalUser;

    fn types(&self) -> &[&'static str] {
        &Kind::NAMES
    }

    fn statements(&self, dialect: Dialect) -> Vec<String> {
        if self.procedures {
            procedures::calls(dialect)
        } else {
            statements::all(dialect)
        }
    }

    async fn preflight<C: Connection>(
        &mut self,
        connection: &mut C,
        dialect: Dialect,
    ) -> Result<(), Unfit> {
        let counted = connection.number("SELECT COUNT(*) FROM warehouse").await;
        let counted = counted.map_err(|source| Unfit::of("counting the warehouses", source))?;
        let count = counted.unwrap_or_default();
        if count == self.site.warehouses {
            if self.procedures {
                let installed = procedures::install(connection, dialect, self.one_of_several).await;
                installed.map_err(|source| Unfit::of("creating the procedures", source))?;
            }
            return Ok(());
        }
        Err(Unfit::Tables(LoadError::Scale {
            expected: self.site.warehouses,
            count,
            unit: "warehouses".into(),
        }))
    }

    fn user(&self, number: u32, _dialect: Dialect) -> TerminalUser {
        TerminalUser {
            terminal: Terminal::new(self.site, self.seed, number),
            inputs: None,
            think_time_scale: self.think_time_scale,
            procedures: self.procedures,
            now: String::new(),
            drawn: Counts::new(),
        }
    }

    fn constants(&self) -> Counts {
        let constants = self.site.constants;
        let named = [
            ("nurand_c_last_name_load", constants.last_name_load),
            ("nurand_c_last_name_run", constants.last_name),
            ("nurand_c_customer", constants.customer),
            ("nurand_c_item", constants.item),
        ];
        named
            .map(|(name, constant)| (name, u64::try_from(constant).unwrap_or_default()))
            .into()
    }
}

/// A user at a terminal.
pub struct TerminalUser {
    terminal: Terminal,
    inputs: Option<Inputs>,
    think_time_scale: f64,
    procedures: bool,
    /// Date and time of the transaction, the same for all its attempts.
    now: String,
    drawn: Counts,
}

impl User for TerminalUser {
    fn next(&mut self) -> usize {
        let inputs = self.terminal.next();
        self.inputs.insert(inputs).kind() as usize
    }

    fn waits_s(&mut self) -> (f64, f64) {
        match &self.inputs {
            Some(inputs) if self.think_time_scale > 0.0 => {
                let kind = inputs.kind();
                let (keying_s, thinking_s) = self.terminal.waits_s(kind, self.think_time_scale);
                let (times, milliseconds) = kind.thinking_names();
                *self.drawn.entry(times).or_default() += 1;
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // minutes
                let spent = (thinking_s * 1000.0).round() as u64;
                *self.drawn.entry(milliseconds).or_default() += spent;
                (keying_s, thinking_s)
            }
            _ => (0.0, 0.0),
        }
    }

    fn start(&mut self) {
        self.now = calendar::date_time(Reading::now().realtime_ns / 1_000_000_000);
        if let Some(inputs) = &self.inputs {
            inputs.count(&mut self.drawn);
        }
    }

    async fn transaction<C: Connection>(
        &mut self,
        connection: &mut C,
    ) -> Result<TransactionEnd, DriverError> {
        let Some(inputs) = &self.inputs else {
            return Err(DriverError::unexpected("no transaction was drawn"));
        };
        let ended = if self.procedures {
            procedures::run(connection, inputs, &self.now).await?
        } else {
            transactions::run(connection, inputs, &self.now).await?
        };
        for (name, count) in [
            ("delivered_orders", ended.delivered),
            ("delivery_skipped_districts", ended.skipped),
        ] {
            *self.drawn.entry(name).or_default() += count;
        }
        Ok(if ended.rolled_back {
            TransactionEnd::RolledBack
        } else {
            TransactionEnd::Committed
        })
    }

    fn spread(&mut self) -> f64 {
        self.terminal.spread()
    }

    fn drawn(&self) -> Counts {
        self.drawn.clone()
    }
}
