//! What every profile leaves true of the tables, whatever it drew.
//!
//! There is no specification to take conditions from; these follow from the statements: keys come and go in pairs,
//! and text keeps its form.

use fairtrial_protocol::load::{Checked, Condition};
use fairtrial_protocol::oltp::{OltpCheck, Profile};

use super::population::validate;
use super::schema;
use crate::driver::endpoint::{self, Job};
use crate::driver::{Connection, Driver, DriverError};
use crate::error::LoadError;

/// Examples of violations kept per condition.
const EXAMPLES_LIMIT: usize = 20;

/// Violations counted per table and condition: a table that is wrong throughout need not be sent whole.
const VIOLATIONS_LIMIT: usize = 1_000;

/// A condition of one table: a query that gives a row, of columns with names, where it is violated.
struct Rule {
    name: &'static str,
    statement: &'static str,
    query: fn(table: &str, scale: &TableScale) -> String,
}

struct TableScale {
    profile: Profile,
    table_size: i64,
}

const RULES: [Rule; 3] = [
    Rule {
        name: "rows",
        statement: "a table has as many rows as were loaded, more after insert, fewer after delete",
        query: rows,
    },
    Rule {
        name: "keys",
        statement: "keys go from 1 to the number of rows loaded, further after insert",
        query: |table, scale| {
            let above = match scale.profile {
                Profile::Insert => String::new(),
                _ => format!(" OR id > {}", scale.table_size),
            };
            format!("SELECT id FROM {table} WHERE id < 1{above}")
        },
    },
    Rule {
        name: "text",
        statement: "c holds ten and pad five groups of eleven digits",
        query: |table, _| {
            let groups = |count| vec!["_".repeat(11); count].join("-");
            // PostgreSQL compares a CHAR with its padding.
            format!(
                "SELECT id, c, pad FROM {table} WHERE RTRIM(c) NOT LIKE '{}' OR RTRIM(pad) NOT LIKE '{}'",
                groups(10),
                groups(5)
            )
        },
    },
];

fn rows(table: &str, scale: &TableScale) -> String {
    let wrong = match scale.profile {
        Profile::Insert => "<",
        Profile::Delete => ">",
        _ => "<>",
    };
    let size = scale.table_size;
    format!("SELECT COUNT(*) AS row_count FROM {table} HAVING COUNT(*) {wrong} {size}")
}

/// Checks the tables of every profile but `bulk_insert`.
pub fn check(parameters: &OltpCheck) -> Result<Checked, LoadError> {
    validate(parameters.tables, parameters.table_size)?;
    if parameters.profile == Profile::BulkInsert {
        let problem = "bulk_insert leaves nothing to check";
        return Err(LoadError::parameter("profile", problem));
    }
    endpoint::with(&parameters.endpoint, OltpCheckJob { parameters })
}

struct OltpCheckJob<'a> {
    parameters: &'a OltpCheck,
}

impl Job for OltpCheckJob<'_> {
    type Output = Result<Checked, LoadError>;

    fn run<D: Driver>(self, driver: D) -> Self::Output {
        let scale = TableScale {
            profile: self.parameters.profile,
            table_size: self.parameters.table_size.into(),
        };
        let checked = driver.block_on(async {
            let mut connection = driver.connect(&[]).await?;
            let mut conditions = Vec::with_capacity(RULES.len());
            for rule in &RULES {
                let mut condition = Condition {
                    clause: rule.name.into(),
                    statement: rule.statement.into(),
                    violations: 0,
                    examples: Vec::new(),
                };
                for number in 1..=self.parameters.tables {
                    let table = schema::name(number);
                    look(&mut connection, rule, (&table, &scale), &mut condition).await?;
                }
                conditions.push(condition);
            }
            Ok(Checked { conditions })
        });
        checked
            .map_err(LoadError::start("a reactor"))?
            .map_err(|source: DriverError| LoadError::Statement {
                doing: format!("checking the tables in {}", driver.describe()),
                source,
            })
    }
}

/// Adds one table's violations of a rule.
async fn look<C: Connection>(
    connection: &mut C,
    rule: &Rule,
    (table, scale): (&str, &TableScale),
    condition: &mut Condition,
) -> Result<(), DriverError> {
    let query = (rule.query)(table, scale);
    let answer = connection
        .text(&format!("{query} LIMIT {VIOLATIONS_LIMIT}"))
        .await?;
    condition.violations += answer.rows.len() as u64;
    for row in &answer.rows {
        if condition.examples.len() == EXAMPLES_LIMIT {
            break;
        }
        let cells = answer.columns.iter().zip(row);
        let cells =
            cells.map(|(name, cell)| format!(" {name}={}", cell.as_deref().unwrap_or("NULL")));
        condition
            .examples
            .push(format!("{table}{}", cells.collect::<String>()));
    }
    Ok(())
}
