//! What the kernel says, what people write, and what must stay different.

use super::*;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

#[test]
fn the_kernels_words_are_understood() {
    for (expected, value, how) in [
        ("60", "60\n", Normalise::Trim),
        (
            "4096 131072 6291456",
            "4096\t131072\t6291456\n",
            Normalise::Words,
        ),
        ("madvise", "always [madvise] never\n", Normalise::Brackets),
        ("full", "none voluntary (full)\n", Normalise::Brackets),
        ("7", "0x0007\n", Normalise::Integer),
        ("0x10", "16\n", Normalise::Integer),
        ("-010", "-10", Normalise::Integer),
        ("on", "Y\n", Normalise::Boolean),
        ("0", "off", Normalise::Boolean),
    ] {
        assert!(
            equal(expected, value, how),
            "{expected:?} and {value:?} under {how:?}"
        );
    }
}

#[test]
fn different_values_stay_different() {
    for (expected, value, how) in [
        ("60", "61\n", Normalise::Trim),
        ("1 2", "12", Normalise::Words),
        ("never", "always [madvise] never\n", Normalise::Brackets),
        ("10", "0x10", Normalise::Integer),
        ("ten", "10", Normalise::Integer),
        ("on", "0", Normalise::Boolean),
        ("maybe", "1", Normalise::Boolean),
    ] {
        assert!(
            !equal(expected, value, how),
            "{expected:?} and {value:?} under {how:?}"
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

const RULES: [Normalise; 5] = [
    Normalise::Trim,
    Normalise::Words,
    Normalise::Brackets,
    Normalise::Integer,
    Normalise::Boolean,
];

/// Texts made of what kernels and people write.
fn texts(random: &mut StdRng) -> String {
    let pieces = [
        "0", "1", "7", "0x", "-", "+", "on", "N", "[", "]", "always", " ", "\t", "\n", "ß", "00",
        "f", "enabled",
    ];
    (0..random.random_range(0..7))
        .map(|_| pieces[random.random_range(0..pieces.len())])
        .collect()
}

#[test]
fn under_every_rule_equality_is_an_equivalence_that_ignores_white_space_around() {
    let mut random = StdRng::seed_from_u64(3);
    for _ in 0..20_000 {
        let (a, b, c) = (texts(&mut random), texts(&mut random), texts(&mut random));
        for how in RULES {
            assert!(equal(&a, &a, how), "{a:?} under {how:?}");
            assert_eq!(
                equal(&a, &b, how),
                equal(&b, &a, how),
                "{a:?} {b:?} under {how:?}"
            );
            if equal(&a, &b, how) && equal(&b, &c, how) {
                assert!(equal(&a, &c, how), "{a:?} {b:?} {c:?} under {how:?}");
            }
            assert!(
                equal(&a, &format!("\n\t {a} \n"), how),
                "{a:?} under {how:?}"
            );
            let once = normalise(&a, how);
            assert_eq!(
                normalise(&once, how),
                once,
                "{a:?} under {how:?}: twice is once"
            );
        }
    }
}

#[test]
fn integers_are_equal_exactly_when_their_numbers_are() {
    let mut random = StdRng::seed_from_u64(5);
    let written = |number: i64, form: u32| match (form, number < 0) {
        (0, _) => number.to_string(),
        (1, false) => format!("{number:#x}"),
        (1, true) => format!("-{:#X}", number.unsigned_abs()).replace("0X", "0x"),
        (2, false) => format!("000{number}"),
        (2, true) => format!("-000{}", number.unsigned_abs()),
        (_, false) => format!("0X{number:X}\n"),
        (_, true) => format!(" -0X{:x}", number.unsigned_abs()),
    };
    for _ in 0..20_000 {
        let a = [
            random.random_range(-3..=3),
            random.random(),
            i64::MIN,
            i64::MAX,
        ][random.random_range(0..4)];
        let b = if random.random_range(0..2) == 0 {
            a
        } else {
            random.random_range(-3..=3)
        };
        let (left, right) = (
            written(a, random.random_range(0..4)),
            written(b, random.random_range(0..4)),
        );
        assert_eq!(
            equal(&left, &right, Normalise::Integer),
            a == b,
            "{left:?} {right:?}"
        );
    }
}

#[test]
fn what_is_no_integer_is_compared_as_text() {
    for text in [
        "--5", "-+5", "+5", "0x", "0x-5", "0x+5", "-", "", "5 6", "1e3", "0xg", "1_000", "\u{663}",
    ] {
        for number in ["5", "-5", "0", "56", "1000", "3"] {
            assert!(
                !equal(text, number, Normalise::Integer),
                "{text:?} {number:?}"
            );
        }
    }
    let huge = "170141183460469231731687303715884105728"; // one above the largest that fits
    for text in [huge.to_owned(), format!("-{huge}"), format!("--{huge}")] {
        assert!(equal(&text, &format!("{text}\n"), Normalise::Integer));
        assert!(!equal(&text, "0", Normalise::Integer));
    }
    assert!(equal(
        "18446744073709551615",
        "0xffffffffffffffff",
        Normalise::Integer
    ));
}

#[test]
fn truth_has_many_words_and_each_means_one_thing() {
    let yes = ["1", "y", "Y", "yes", "on", "ON", "true", "enabled"];
    let no = ["0", "n", "N", "no", "off", "OFF", "false", "disabled"];
    for a in yes {
        for b in yes {
            assert!(equal(a, b, Normalise::Boolean), "{a} {b}");
        }
        for b in no {
            assert!(!equal(a, b, Normalise::Boolean), "{a} {b}");
        }
    }
    for neither in ["2", "", "0x0007", "onn", "10"] {
        assert!(
            !yes.iter()
                .chain(&no)
                .any(|word| equal(word, neither, Normalise::Boolean)),
            "{neither}"
        );
    }
}

#[test]
fn choices_of_real_kernels_are_read() {
    for (content, chosen) in [
        ("always [madvise] never\n", Some("madvise")),
        ("[mq-deadline] kyber bfq none\n", Some("mq-deadline")),
        ("[none]\n", Some("none")),
        ("none [lz4hc]\n", Some("lz4hc")),
        ("s2idle [deep]\n", Some("deep")),
        (
            "always defer defer+madvise [madvise] never\n",
            Some("madvise"),
        ),
        ("lzo-rle lzo lz4 [zstd] 842\n", Some("zstd")),
        ("60\n", None),
        ("", None),
        ("[]\n", None),
        ("a ]b[ c\n", None),
        ("a [b\n", None),
        ("[mysqld]\nport=3306\n", None),
        ("# [a]\n", Some("a")),
    ] {
        assert_eq!(bracketed(content), chosen, "{content:?}");
    }
}
