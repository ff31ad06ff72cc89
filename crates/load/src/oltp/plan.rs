//! What all users of a drive do.

use fairtrial_protocol::oltp::{Distribution, Mix, Profile, Protocol};

use super::keys::Keys;
use super::statements::{Act, TableStatement};
use crate::driver::StatementId;

/// A drive's parameters, made ready for drawing.
pub struct OltpPlan {
    /// What a transaction does.
    pub profile: Profile,
    /// Groups of acts, each on a table of its own.
    pub groups: Vec<(Act, u32)>,
    /// How many statements of each kind, and how long ranges are.
    pub mix: Mix,
    /// Number of tables.
    pub tables: u32,
    /// Rows of each.
    pub table_size: u32,
    /// Virtual users.
    pub users: u32,
    /// Keys of a table.
    pub keys: Keys,
    /// How they are drawn.
    pub distribution: Distribution,
    /// Whether statements are one transaction.
    pub in_transaction: bool,
    /// How statements reach the system.
    pub protocol: Protocol,
    /// Whether they go out before the first is answered.
    pub pipelining: bool,
    /// Seed of the run.
    pub seed: u64,
    /// Prepared kinds, each once per table.
    pub prepared: Vec<TableStatement>,
    /// The largest key of each table when the drive began.
    pub last_keys: Vec<i64>,
}

impl OltpPlan {
    /// A prepared statement's number.
    pub fn statement(&self, statement: TableStatement, table: u32) -> StatementId {
        let place = self.prepared.iter().position(|known| *known == statement);
        StatementId(place.unwrap_or_default() * self.tables as usize + table as usize - 1)
    }

    /// Whether a table whose largest key is `last_key` may have the size that is asked for.
    pub fn fits(&self, last_key: i64) -> bool {
        let size = i64::from(self.table_size);
        match self.profile {
            // An earlier drive of the same profile has left more rows, or fewer.
            Profile::Insert => last_key >= size,
            Profile::Delete => (1..=size).contains(&last_key),
            Profile::BulkInsert => true,
            _ => last_key == size,
        }
    }
}
