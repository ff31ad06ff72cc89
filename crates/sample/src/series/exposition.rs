//! Text exposition: Prometheus' format 0.0.4 and `OpenMetrics` 1.0, as series with a value each.
//!
//! Source: Prometheus, "Exposition formats", and the specification of `OpenMetrics`. Timestamps and
//! exemplars are read over: what counts is when the endpoint was read.

use std::collections::HashMap;

use super::reader::SeriesValue;

/// Most samples of one answer that are kept: each is a row of every reading and a candidate reason, and an endpoint with
/// a name for every request has no end of them.
pub const MOST_SAMPLES: usize = 10_000;

/// Suffixes of samples that belong to a family declared without them.
const SUFFIXES: [&str; 7] = [
    "_total", "_bucket", "_count", "_sum", "_created", "_gcount", "_gsum",
];

/// Every sample whose metric `keep` wants, in the text's order.
///
/// # Errors
///
/// A sentence that names the first line that is not of the format, or says that the text was cut: every line ends by a
/// newline, but the `# EOF` of `OpenMetrics`; or that there are more than [`MOST_SAMPLES`].
pub fn parse(text: &str, keep: impl Fn(&str) -> bool) -> Result<Vec<SeriesValue>, String> {
    if !(text.is_empty() || text.ends_with('\n') || text.ends_with("\n# EOF")) {
        return Err("its last line has no end, so the answer was cut".to_owned());
    }
    let mut types = HashMap::new();
    let mut values = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_ascii_whitespace();
            if words.next() == Some("TYPE")
                && let (Some(name), Some(kind)) = (words.next(), words.next())
            {
                types.insert(name, kind);
            }
        } else if !line.is_empty() {
            let sample =
                sample(line).ok_or_else(|| format!("line {} is not a sample", index + 1))?;
            if keep(sample.name) {
                if values.len() == MOST_SAMPLES {
                    return Err(too_many());
                }
                values.push(SeriesValue {
                    counter: is_counter(sample.name, &types),
                    series: sample.series(),
                    value: sample.value,
                });
            }
        }
    }
    Ok(values)
}

/// What is wrong with a source that has no end of series.
pub fn too_many() -> String {
    format!(
        "it has more than {MOST_SAMPLES} different series; keep those that are needed by `match`"
    )
}

/// Whether the declared type says that a sample only grows. What is not declared may do anything.
fn is_counter(name: &str, types: &HashMap<&str, &str>) -> bool {
    if let Some(kind) = types.get(name) {
        return *kind == "counter";
    }
    let declared = SUFFIXES.iter().find_map(|suffix| {
        let kind = types.get(name.strip_suffix(suffix)?)?;
        Some((*kind, *suffix))
    });
    matches!(
        declared,
        Some(
            ("counter", "_total")
                | ("histogram", "_bucket" | "_count" | "_sum")
                | ("summary", "_count" | "_sum")
        )
    )
}

struct TextSample<'a> {
    name: &'a str,
    /// Names and values, the latter escaped as they stand.
    labels: Vec<(&'a str, &'a str)>,
    value: f64,
}

impl TextSample<'_> {
    /// The name with its labels in order: the same series in every reading.
    fn series(&self) -> String {
        let mut labels = self.labels.clone();
        labels.sort_unstable();
        let inside: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        match inside.as_slice() {
            [] => self.name.to_owned(),
            inside => format!("{}{{{}}}", self.name, inside.join(",")),
        }
    }
}

fn sample(line: &str) -> Option<TextSample<'_>> {
    let (name, rest) = split_name(line, |byte| byte == b':')?;
    let (labels, rest) = match rest.trim_start().strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (vec![], rest.strip_prefix([' ', '\t'])?),
    };
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(TextSample {
        name,
        labels,
        value,
    })
}

/// The labels up to the closing brace, and what stands behind it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = split_name(rest, |_| false)?;
        let quoted = behind.trim_start().strip_prefix('=')?;
        let quoted = quoted.trim_start().strip_prefix('"')?;
        let end = closing_quote(quoted)?;
        labels.push((name, &quoted[..end]));
        rest = quoted[end + 1..].trim_start();
        rest = match rest.strip_prefix(',') {
            Some(behind) => behind,
            None if rest.starts_with('}') => rest,
            None => return None,
        };
    }
}

fn closing_quote(quoted: &str) -> Option<usize> {
    let mut escaped = false;
    quoted.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// A name at the start: letters, digits, `_` and what else is allowed; no digit first.
fn split_name(text: &str, more: impl Fn(u8) -> bool) -> Option<(&str, &str)> {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || more(byte);
    let end = text.bytes().position(|byte| !belongs(byte))?;
    let (name, rest) = text.split_at(end);
    let starts_well = !name.as_bytes().first()?.is_ascii_digit();
    starts_well.then_some((name, rest))
}

/// Whether a metric's name is one of the patterns, `*` standing for any part of it; without any it is.
#[must_use]
pub fn matches(patterns: &[String], name: &str) -> bool {
    patterns.is_empty()
        || patterns
            .iter()
            .any(|pattern| matches_one(pattern.as_bytes(), name.as_bytes()))
}

/// The part that the last star stands for grows until the rest fits: an earlier star need not grow again.
fn matches_one(mut pattern: &[u8], mut name: &[u8]) -> bool {
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern, name) {
            ([b'*', rest @ ..], _) => {
                star = Some((rest, name));
                pattern = rest;
            }
            ([first, pattern_rest @ ..], [letter, name_rest @ ..]) if first == letter => {
                (pattern, name) = (pattern_rest, name_rest);
            }
            ([], []) => return true,
            _ => {
                let Some((after, [_, from @ ..])) = star else {
                    return false;
                };
                star = Some((after, from));
                (pattern, name) = (after, from);
            }
        }
    }
}

#[cfg(test)]
mod tests;
