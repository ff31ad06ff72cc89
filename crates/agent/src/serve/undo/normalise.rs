//! Comparing what was asked with what the kernel answers, which is rarely in the same words.

use fairtrial_protocol::step::Normalise;

/// Whether two texts mean the same.
pub fn equal(expected: &str, value: &str, how: Normalise) -> bool {
    normalise(expected, how) == normalise(value, how)
}

/// The word in brackets of a choice, where there is exactly one: `always [madvise] never`. A choice is one line: a file
/// of several lines with brackets in it (`[mysqld]`) is no choice.
pub fn bracketed(text: &str) -> Option<&str> {
    marked(text, '[', ']')
}

/// [`bracketed`] in parentheses: `none voluntary (full)`.
pub fn parenthesised(text: &str) -> Option<&str> {
    marked(text, '(', ')')
}

fn marked(text: &str, open: char, close: char) -> Option<&str> {
    let text = text.trim();
    if text.contains('\n') {
        return None;
    }
    let (_, rest) = text.split_once(open)?;
    let (word, rest) = rest.split_once(close)?;
    let is_word = !word.is_empty() && !word.contains(char::is_whitespace);
    (is_word && !rest.contains(open)).then_some(word)
}

/// A text that has no meaning under a rule is compared as it stands.
fn normalise(text: &str, how: Normalise) -> String {
    let trimmed = text.trim();
    match how {
        Normalise::Trim => trimmed.to_owned(),
        Normalise::Words => trimmed.split_whitespace().collect::<Vec<_>>().join(" "),
        Normalise::Brackets => bracketed(trimmed)
            .or_else(|| parenthesised(trimmed))
            .unwrap_or(trimmed)
            .to_owned(),
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
    let (digits, radix) = hexadecimal.map_or((digits, 10), |digits| (digits, 16));
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None; // Rust would take a second sign
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
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
mod tests;
