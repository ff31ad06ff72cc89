//! Customers' last names (clause 4.3.2.3).

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// Appends the last name of a number in `[0, 999]`: one syllable per decimal digit.
pub fn last_name(number: i64, out: &mut String) {
    for divisor in [100, 10, 1] {
        out.push_str(SYLLABLES[usize::try_from(number / divisor % 10).unwrap_or_default()]);
    }
}

/// The last decimal digit of the number that gave a name; no syllable ends with another.
pub fn last_digit(name: &str) -> usize {
    let syllable = SYLLABLES.iter().position(|end| name.ends_with(end));
    syllable.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_example_is_met() {
        let name = |number| {
            let mut out = String::new();
            last_name(number, &mut out);
            out
        };
        assert_eq!(name(371), "PRICALLYOUGHT");
        assert_eq!(name(40), "BARPRESBAR");
        for (digit, number) in (0..1000).enumerate() {
            assert_eq!(last_digit(&name(number)), digit % 10);
        }
        let all: std::collections::BTreeSet<_> = (0..1000).map(name).collect();
        assert_eq!(all.len(), 1000, "every number has its own name");
        assert!(
            all.iter().all(|name| name.len() <= 16),
            "C_LAST holds 16 characters"
        );
    }
}
