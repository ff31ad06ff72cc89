//! Steps change a place: what is not understood to the last word is not done.

use std::fs;

use fairtrial_protocol::step::{Check, Inverse, Normalise, Read, Step};
use serde_json::{Value, json};

use crate::messages::examples;

/// Pointers to every object inside a value, itself included.
fn objects(value: &Value, at: &str) -> Vec<String> {
    let Value::Object(map) = value else {
        return Vec::new();
    };
    let below = map
        .iter()
        .flat_map(|(name, inner)| objects(inner, &format!("{at}/{name}")));
    std::iter::once(at.to_owned()).chain(below).collect()
}

#[test]
fn a_misspelt_field_is_refused_wherever_it_stands() {
    let examples = examples("step-");
    assert!(examples.len() >= 4);
    for path in examples {
        let text = fs::read_to_string(path).expect("readable");
        let example: Value = serde_json::from_str(&text).expect("JSON");
        for pointer in objects(&example, "") {
            let mut mistaken = example.clone();
            mistaken.pointer_mut(&pointer).expect("there")["misspelt"] = json!(1);
            assert!(
                serde_json::from_value::<Step>(mistaken).is_err(),
                "at {pointer:?} of {example}"
            );
        }
    }
}

#[test]
fn a_check_compares_trimmed_text_unless_told_otherwise() {
    let check: Check =
        serde_json::from_value(json!({"read": {"kind": "file", "path": "/f"}, "expect": "1"}))
            .expect("enough");
    assert_eq!(check.normalise, Normalise::Trim);
    assert_eq!(
        check.read,
        Read::File {
            path: "/f".to_owned()
        }
    );
}

#[test]
fn every_normalisation_has_one_name() {
    for (name, normalise) in [
        ("trim", Normalise::Trim),
        ("words", Normalise::Words),
        ("brackets", Normalise::Brackets),
        ("integer", Normalise::Integer),
        ("boolean", Normalise::Boolean),
    ] {
        assert_eq!(serde_json::to_value(normalise).expect("plain"), json!(name));
        assert_eq!(
            serde_json::from_value::<Normalise>(json!(name)).expect("known"),
            normalise
        );
        assert!(serde_json::from_value::<Normalise>(json!(name.to_uppercase())).is_err());
    }
}

#[test]
fn the_way_back_is_never_guessed() {
    assert!(serde_json::from_value::<Inverse>(json!({})).is_err());
    let step = json!({"name": "x", "action": {"kind": "create", "path": "/d"}});
    let error = serde_json::from_value::<Step>(step)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("inverse"), "{error}");
}
