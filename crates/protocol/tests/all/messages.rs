//! Every message has an example in `tests/messages`, read here and by the Python tests: both sides mean the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fairtrial_protocol::event::Event;
use fairtrial_protocol::request::{ChunkHeader, Request};
use fairtrial_protocol::step::{Action, Step};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub fn examples(prefix: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/messages");
    let entries = fs::read_dir(directory).expect("the examples are in the checkout");
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        })
        .collect()
}

/// Reads each example as `T`, writes it again, and returns the tags seen at `pointer`.
fn round_trip<T: Serialize + DeserializeOwned>(prefix: &str, pointer: &str) -> BTreeSet<String> {
    let mut tags = BTreeSet::new();
    for path in examples(prefix) {
        let text = fs::read_to_string(&path).expect("readable");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let message: T = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let written = serde_json::to_value(&message).expect("messages are plain data");
        assert_eq!(written, document, "{}", path.display());
        tags.extend(
            document
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned),
        );
    }
    tags
}

/// The tags that a tagged enum's schema lists.
fn tags_of<T: JsonSchema>(tag: &str) -> BTreeSet<String> {
    let schema = schema_for!(T);
    let variants = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .expect("a tagged enum");
    variants
        .iter()
        .map(|variant| {
            variant["properties"][tag]["const"]
                .as_str()
                .expect("a tag")
                .to_owned()
        })
        .collect()
}

#[test]
fn every_request_has_an_example_that_survives_a_round_trip() {
    assert_eq!(
        round_trip::<Request>("request-", "/request"),
        tags_of::<Request>("request")
    );
}

#[test]
fn every_event_has_an_example_that_survives_a_round_trip() {
    assert_eq!(
        round_trip::<Event>("event-", "/event"),
        tags_of::<Event>("event")
    );
}

#[test]
fn every_action_of_a_step_has_an_example_that_survives_a_round_trip() {
    assert_eq!(
        round_trip::<Step>("step-", "/action/kind"),
        tags_of::<Action>("kind")
    );
}

#[test]
fn the_chunk_header_has_an_example_that_survives_a_round_trip() {
    assert_eq!(examples("chunk").len(), 1);
    round_trip::<ChunkHeader>("chunk", "/none");
}

#[test]
fn a_request_answers_with_its_own_number() {
    for path in examples("request-") {
        let text = fs::read_to_string(&path).expect("readable");
        let request: Request = serde_json::from_str(&text).expect("an example");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            Some(request.id()),
            value["id"].as_u64(),
            "{}",
            path.display()
        );
    }
}
