//! Comparing what was asked with what the kernel answers, which is rarely in the same words.

use fairtrial_protocol::step::Normalise;

/// Whether two texts mean the same.
pub fn equal(asked: &str, found: &str, how: Normalise) -> bool {
    normalise(asked, how) == normalise(found, how)
}

/// The word in brackets, where there is exactly one: `always [madvise] never`.
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    let (word, rest) = rest.split_once(']')?;
    let is_word = !word.is_empty() && !word.contains(char::is_whitespace);
    (is_word && !rest.contains('[')).then_some(word)
}

/// A text that has no meaning under a rule is compared as it stands.
fn normalise(text: &str, how: Normalise) -> String {
    let trimmed = text.trim();
    match how {
        Normalise::Trim => trimmed.to_owned(),
        Normalise::Words => trimmed.split_whitespace().collect::<Vec<_>>().join(" "),
        Normalise::Brackets => bracketed(trimmed).unwrap_or(trimmed).to_owned(),
        Normalise::Integer => {
            integer(trimmed).map_or_else(|| trimmed.to_owned(), |number| number.to_string())
        }
        Normalise::Boolean => {
            boolean(trimmed).map_or_else(|| trimmed.to_owned(), |truth| truth.to_string())
        }
    }
}

fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => i128::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -number } else { number })
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" | "on" | "true" | "enabled" => Some(true),
        "0" | "n" | "no" | "off" | "false" | "disabled" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        for (asked, found, how) in [
            ("60", "60\n", Normalise::Trim),
            (
                "4096 131072 6291456",
                "4096\t131072\t6291456\n",
                Normalise::Words,
            ),
            ("madvise", "always [madvise] never\n", Normalise::Brackets),
            ("7", "0x0007\n", Normalise::Integer),
            ("0x10", "16\n", Normalise::Integer),
            ("-010", "-10", Normalise::Integer),
            ("on", "Y\n", Normalise::Boolean),
            ("0", "off", Normalise::Boolean),
        ] {
            assert!(
                equal(asked, found, how),
                "{asked:?} and {found:?} under {how:?}"
            );
        }
    }

    #[test]
    fn different_values_stay_different() {
        for (asked, found, how) in [
            ("60", "61\n", Normalise::Trim),
            ("1 2", "12", Normalise::Words),
            ("never", "always [madvise] never\n", Normalise::Brackets),
            ("10", "0x10", Normalise::Integer),
            ("ten", "10", Normalise::Integer),
            ("on", "0", Normalise::Boolean),
            ("maybe", "1", Normalise::Boolean),
        ] {
            assert!(
                !equal(asked, found, how),
                "{asked:?} and {found:?} under {how:?}"
            );
        }
    }

    #[test]
    fn only_a_single_bracketed_word_is_a_choice() {
        assert_eq!(bracketed("a [b] c"), Some("b"));
        assert_eq!(bracketed("[a] [b]"), None);
        assert_eq!(bracketed("[a b]"), None);
        assert_eq!(bracketed("plain"), None);
    }
}
