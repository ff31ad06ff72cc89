//! Text of the columns `c` and `pad`: groups of eleven digits with dashes between them.

use crate::random::Random;

/// Groups of `c`: 119 characters.
pub const C_GROUPS: usize = 10;
/// Groups of `pad`: 59 characters.
pub const PAD_GROUPS: usize = 5;

const DIGITS: i64 = 11;

/// Appends that many groups.
pub fn groups(random: &mut Random, count: usize, out: &mut String) {
    for group in 0..count {
        if group > 0 {
            out.push('-');
        }
        random.digits(DIGITS, DIGITS, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_hold_119_and_59_characters_of_digits_and_dashes() {
        let mut random = Random::derive(1, "text", &[]);
        let (mut c, mut pad) = (String::new(), String::new());
        groups(&mut random, C_GROUPS, &mut c);
        groups(&mut random, PAD_GROUPS, &mut pad);
        assert_eq!((c.len(), pad.len()), (119, 59));
        for text in [c, pad] {
            for group in text.split('-') {
                assert!(group.len() == 11 && group.bytes().all(|byte| byte.is_ascii_digit()));
            }
        }
    }
}
