//! The statements of the family, once per table, prepared or as text.

use fairtrial_protocol::oltp::{Mix, Profile};

use super::schema;

/// A statement that is the same for every table but for its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStatement {
    /// A row by its key.
    PointSelect,
    /// Rows of a range.
    SimpleRange,
    /// Sum over a range.
    SumRange,
    /// Rows of a range, in order.
    OrderRange,
    /// Different rows of a range, in order.
    DistinctRange,
    /// Changes the indexed column.
    IndexUpdate,
    /// Changes a column without an index.
    NonIndexUpdate,
    /// Deletes a row.
    Delete,
    /// Inserts a row.
    Insert,
    /// Rows of several values of the indexed column.
    RandomPoints,
    /// How many rows are in several ranges of the indexed column.
    RandomRanges,
}

impl TableStatement {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::PointSelect,
        Self::SimpleRange,
        Self::SumRange,
        Self::OrderRange,
        Self::DistinctRange,
        Self::IndexUpdate,
        Self::NonIndexUpdate,
        Self::Delete,
        Self::Insert,
        Self::RandomPoints,
        Self::RandomRanges,
    ];

    /// What its count is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::PointSelect => "point_selects",
            Self::SimpleRange => "simple_ranges",
            Self::SumRange => "sum_ranges",
            Self::OrderRange => "order_ranges",
            Self::DistinctRange => "distinct_ranges",
            Self::IndexUpdate => "index_updates",
            Self::NonIndexUpdate => "non_index_updates",
            Self::Delete => "deletes",
            Self::Insert => "inserts",
            Self::RandomPoints => "random_points",
            Self::RandomRanges => "random_ranges",
        }
    }

    /// Whether it gives rows.
    pub fn reads(self) -> bool {
        !matches!(
            self,
            Self::IndexUpdate | Self::NonIndexUpdate | Self::Delete | Self::Insert
        )
    }

    /// Its text for a table, a question mark for each value.
    pub fn template(self, table: u32, mix: &Mix) -> String {
        let name = schema::name(table);
        let repeated =
            |what: &str, count: u32, between: &str| vec![what; count as usize].join(between);
        match self {
            Self::PointSelect => format!("SELECT c FROM {name} WHERE id = ?"),
            Self::SimpleRange => format!("SELECT c FROM {name} WHERE id BETWEEN ? AND ?"),
            Self::SumRange => format!("SELECT SUM(k) FROM {name} WHERE id BETWEEN ? AND ?"),
            Self::OrderRange => {
                format!("SELECT c FROM {name} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Self::DistinctRange => {
                format!("SELECT DISTINCT c FROM {name} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Self::IndexUpdate => format!("UPDATE {name} SET k = k + 1 WHERE id = ?"),
            Self::NonIndexUpdate => format!("UPDATE {name} SET c = ? WHERE id = ?"),
            Self::Delete => format!("DELETE FROM {name} WHERE id = ?"),
            Self::Insert => format!("INSERT INTO {name} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            Self::RandomPoints => {
                let points = repeated("?", mix.random_points, ", ");
                format!("SELECT id, k, c, pad FROM {name} WHERE k IN ({points})")
            }
            Self::RandomRanges => {
                let ranges = repeated("k BETWEEN ? AND ?", mix.random_ranges, " OR ");
                format!("SELECT COUNT(k) FROM {name} WHERE {ranges}")
            }
        }
    }
}

/// What is done to one row or range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// One statement.
    Once(TableStatement),
    /// A deletion and an insertion of the same key.
    Replace,
}

impl Act {
    /// Its statements.
    pub fn statements(self) -> Vec<TableStatement> {
        match self {
            Self::Once(statement) => vec![statement],
            Self::Replace => vec![TableStatement::Delete, TableStatement::Insert],
        }
    }
}

/// What a profile's transaction consists of: groups of equal acts, each group on one table drawn for it. `Insert` and
/// `BulkInsert` write statements of their own.
pub fn groups(profile: Profile, mix: &Mix) -> Vec<(Act, u32)> {
    let once = |statement, count| (Act::Once(statement), count);
    let reads = [
        once(TableStatement::PointSelect, mix.point_selects),
        once(TableStatement::SimpleRange, mix.simple_ranges),
        once(TableStatement::SumRange, mix.sum_ranges),
        once(TableStatement::OrderRange, mix.order_ranges),
        once(TableStatement::DistinctRange, mix.distinct_ranges),
    ];
    let writes = [
        once(TableStatement::IndexUpdate, mix.index_updates),
        once(TableStatement::NonIndexUpdate, mix.non_index_updates),
        (Act::Replace, mix.delete_inserts),
    ];
    let mut groups = match profile {
        Profile::PointSelect => vec![once(TableStatement::PointSelect, 1)],
        Profile::ReadOnly => reads.into(),
        Profile::WriteOnly => writes.into(),
        Profile::ReadWrite => reads.into_iter().chain(writes).collect(),
        Profile::UpdateIndex => vec![once(TableStatement::IndexUpdate, mix.index_updates)],
        Profile::UpdateNonIndex => {
            vec![once(TableStatement::NonIndexUpdate, mix.non_index_updates)]
        }
        Profile::Delete => vec![once(TableStatement::Delete, 1)],
        Profile::SelectRandomPoints => vec![once(TableStatement::RandomPoints, 1)],
        Profile::SelectRandomRanges => vec![once(TableStatement::RandomRanges, 1)],
        Profile::Insert | Profile::BulkInsert => Vec::new(),
    };
    groups.retain(|(_, count)| *count > 0);
    groups
}

/// Whether a profile's statements are one transaction (unless it is asked to do without).
pub fn in_transaction(profile: Profile) -> bool {
    matches!(
        profile,
        Profile::ReadOnly | Profile::ReadWrite | Profile::WriteOnly
    )
}
