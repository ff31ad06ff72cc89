//! The wire does not change by accident: its shape is in `tests/golden/schema.json`, with the version it belongs to.
//!
//! After a change that is meant: raise `VERSION` if a message changed, then run these tests once with
//! `UPDATE_GOLDEN=1` and commit the file.

use std::fs;
use std::path::Path;

use fairtrial_protocol::{
    VERSION, event, file, load, locks, oltp, request, sample, script, state, step,
};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Removes what is said to people only: a better sentence is no other protocol.
fn shape(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(shape);
        }
        Value::Array(items) => items.iter_mut().for_each(shape),
        _ => {}
    }
}

fn wire() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    macro_rules! roots {
        ($($root:ty),* $(,)?) => { $(let _ = generator.subschema_for::<$root>();)* };
    }
    roots!(
        request::Request,
        request::ChunkHeader,
        event::Event,
        step::Step,
        load::TpccLoad,
        load::Loaded,
        load::TpccDrive,
        load::Driven,
        load::Progress,
        load::TpccCheck,
        load::Checked,
        oltp::OltpLoad,
        oltp::OltpDrive,
        oltp::OltpCheck,
        script::ScriptLoad,
        script::ScriptPreflight,
        script::Preflighted,
        script::ScriptDrive,
        file::FileLoad,
        file::FileDrive,
        file::FileCountersOf,
        file::FileCounters,
        locks::LockDrive,
        locks::Contention,
        load::Sql,
        load::Ceiling,
        load::ClientCeiling,
        load::Rows,
        sample::Sample,
        state::Restore,
        state::Restored,
        state::Settle,
        state::Settled,
        state::Facts,
        state::Covariates,
    );
    let mut schema = json!({"version": VERSION, "types": generator.take_definitions(true)});
    shape(&mut schema);
    schema
}

#[test]
fn the_wire_has_the_shape_that_was_agreed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema.json");
    let now = wire();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&now).expect("JSON") + "\n";
        fs::create_dir_all(golden.parent().expect("a directory")).expect("made");
        fs::write(&golden, text).expect("written");
    }
    let agreed: Value =
        serde_json::from_str(&fs::read_to_string(&golden).expect("there")).expect("JSON");
    assert_eq!(now["version"], agreed["version"]);
    let names = |schema: &Value| -> Vec<String> {
        schema["types"]
            .as_object()
            .expect("types")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(names(&now), names(&agreed));
    for name in names(&now) {
        assert_eq!(
            now["types"][&name], agreed["types"][&name],
            "{name}: raise VERSION, then UPDATE_GOLDEN=1, and wire/messages.py with it"
        );
    }
}

#[test]
fn a_changed_field_would_be_seen() {
    let mut other = wire();
    other["types"]["Restore"]["properties"]["from"]["type"] = json!("integer");
    assert_ne!(other, wire());
    assert!(
        !wire().to_string().contains("Prepared directory"),
        "sentences are not part of it"
    );
}
