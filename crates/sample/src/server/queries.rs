//! A few cheap statements, and from their answers to a row.

use std::collections::BTreeMap;

use fairtrial_protocol::load::Rows;

use super::counters::{Counter, LINE};

/// Statements, and which column each name in their answers fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterQueries {
    /// Asked one after the other.
    pub statements: Vec<String>,
    /// Lower-case name in the answers → columns.
    pub columns: BTreeMap<String, Vec<usize>>,
    /// Whether names and values stand in rows, or a single row has a column for each.
    pub in_rows: bool,
}

impl CounterQueries {
    /// Fills a row, one cell for each of `counters`, from the answer to one of the statements. What is no whole number
    /// from 0 up stays as it was.
    pub fn fill(&self, counters: &[Counter], answer: &Rows, row: &mut [Option<u64>]) {
        let mut say = |name: &str, value: Option<&str>| {
            for column in self.columns.get(&name.to_lowercase()).into_iter().flatten() {
                row[*column] = value.and_then(|value| value.parse().ok()).or(row[*column]);
            }
        };
        if self.in_rows {
            for row in &answer.rows {
                match row.as_slice() {
                    [Some(name), value] => say(name, value.as_deref()),
                    [_, _, Some(text)] => monitor_lines(counters, text)
                        .iter()
                        .for_each(|(name, value)| say(name, Some(value))),
                    _ => {}
                }
            }
        } else if let Some(values) = answer.rows.first() {
            for (name, value) in answer.columns.iter().zip(values) {
                say(name, value.as_deref());
            }
        }
    }
}

/// Lines of the monitor's text as names and numbers, each named as the list has it.
fn monitor_lines(counters: &[Counter], text: &str) -> Vec<(String, String)> {
    let line_names = counters
        .iter()
        .flat_map(|counter| &counter.mysql)
        .filter(|name| name.starts_with(LINE));
    line_names
        .filter_map(|name| {
            let words = name.trim_start_matches(LINE);
            let rest = text.lines().find_map(|line| line.strip_prefix(words))?;
            Some((name.clone(), rest.trim().to_owned()))
        })
        .collect()
}

/// The first cell of every row that has one.
pub fn first_cells(rows: &Rows) -> impl Iterator<Item = &str> {
    rows.rows
        .iter()
        .filter_map(|row| row.first().and_then(Option::as_deref))
}
