//! Parameters and results of the native subcommands: each has an example in `tests/native`, and says what is wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fairtrial_protocol::boot::Boot;
use fairtrial_protocol::file::{FileCounters, FileCountersOf, FileDrive, FileLoad};
use fairtrial_protocol::load::{
    Arrivals, Checked, Driven, Loaded, Progress, Rows, Sql, TpccCheck, TpccDrive, TpccLoad,
};
use fairtrial_protocol::locks::{Contention, LockDrive};
use fairtrial_protocol::oltp::{OltpCheck, OltpDrive, OltpLoad, Profile};
use fairtrial_protocol::sample::{HttpAnswer, HttpGet, Sample, Source};
use fairtrial_protocol::script::{Preflighted, ScriptDrive, ScriptLoad, ScriptPreflight};
use fairtrial_protocol::state::{Covariates, Facts, Restore, Restored, Settle, Settled};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn example(name: &str) -> Value {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native");
    let text = fs::read_to_string(directory.join(name).with_extension("json")).expect("there");
    serde_json::from_str(&text).expect("JSON")
}

/// Names of a schema's properties, and of those that must be there.
fn properties<T: JsonSchema>() -> (BTreeSet<String>, BTreeSet<String>) {
    let schema = schema_for!(T);
    let known = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    (
        known
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect(),
        required
            .into_iter()
            .flatten()
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect(),
    )
}

fn round_trip<T: Serialize + DeserializeOwned>(name: &str) {
    let request = example(name);
    let read: T =
        serde_json::from_value(request.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(
        serde_json::to_value(&read).expect("plain data"),
        request,
        "{name}"
    );
}

/// The example holds every field, and a missing one that is required is named.
fn check<T: Serialize + DeserializeOwned + JsonSchema>(name: &str) {
    round_trip::<T>(name);
    let request = example(name);
    let (known, required) = properties::<T>();
    let shown: BTreeSet<String> = request
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    assert_eq!(shown, known, "{name}: an example shows every field");
    assert!(required.is_subset(&known));
    for field in known {
        let mut less = request.clone();
        less.as_object_mut().expect("an object").remove(&field);
        match serde_json::from_value::<T>(less) {
            Ok(_) => assert!(!required.contains(&field), "{name} without {field}"),
            Err(error) => {
                assert!(required.contains(&field), "{name} without {field}: {error}");
                assert!(error.to_string().contains(&field), "{name}: {error}");
            }
        }
        let mut odd = request.clone();
        odd[&field] = json!({"a": {"b": []}});
        serde_json::from_value::<T>(odd)
            .err()
            .unwrap_or_else(|| panic!("{name}: {field} takes anything"));
    }
}

/// Parameters refuse what they do not know: a misspelt option must never be ignored in an experiment.
fn check_parameters<T: Serialize + DeserializeOwned + JsonSchema>(name: &str) {
    check::<T>(name);
    let refuses = |mistaken: Value| {
        let error = serde_json::from_value::<T>(mistaken)
            .err()
            .expect("refused")
            .to_string();
        assert!(
            error.contains("unknown field `misspelt`"),
            "{name}: {error}"
        );
    };
    let mut top = example(name);
    top["misspelt"] = json!(1);
    refuses(top);
    for place in [
        "/endpoint",
        "/drive",
        "/exporters/0",
        "/commands/0",
        "/mounts/0",
        "/drive/endpoint",
        "/mix",
        "/distribution",
        "/fill/0",
        "/transactions/0",
        "/transactions/0/statements/0",
        "/transactions/0/parameters/0",
        "/transactions/0/parameters/0/draw",
    ] {
        let mut below = example(name);
        if let Some(inner) = below.pointer_mut(place) {
            inner["misspelt"] = json!(1);
            refuses(below);
        }
    }
}

#[test]
fn parameters_survive_a_round_trip_and_refuse_what_they_do_not_know() {
    check_parameters::<TpccLoad>("tpcc_load");
    check_parameters::<TpccDrive>("tpcc_drive");
    check_parameters::<TpccCheck>("tpcc_check");
    check_parameters::<OltpLoad>("oltp_load");
    check_parameters::<OltpDrive>("oltp_drive");
    check_parameters::<OltpCheck>("oltp_check");
    check_parameters::<ScriptLoad>("script_load");
    check_parameters::<ScriptPreflight>("script_preflight");
    check_parameters::<ScriptDrive>("script_drive");
    check_parameters::<FileLoad>("file_load");
    check_parameters::<FileDrive>("file_drive");
    check_parameters::<FileCountersOf>("file_counters_of");
    check_parameters::<LockDrive>("lock_drive");
    check_parameters::<Sql>("sql");
    check_parameters::<Sample>("sample");
    check_parameters::<Restore>("restore");
    check_parameters::<Settle>("settle");
    check_parameters::<Boot>("boot");
}

#[test]
fn results_survive_a_round_trip() {
    check::<Loaded>("loaded");
    check::<Driven>("driven");
    check::<Checked>("checked");
    check::<Preflighted>("preflighted");
    check::<FileCounters>("file_counters");
    check::<Contention>("contention");
    check::<Rows>("rows");
    check::<Restored>("restored");
    check::<HttpGet>("http_get");
    check::<HttpAnswer>("http_answer");
    check::<Settled>("settled");
    check::<Facts>("facts");
    check::<Covariates>("covariates");
}

#[test]
fn every_line_of_progress_survives_a_round_trip() {
    let schema = schema_for!(Progress);
    let variants = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .expect("variants");
    for variant in variants {
        let tag = variant["properties"]["progress"]["const"]
            .as_str()
            .expect("a tag");
        round_trip::<Progress>(&format!("progress_{tag}"));
    }
}

#[test]
fn every_example_is_of_a_type_that_is_tested_here() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native");
    let tests =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/native.rs"))
            .expect("this file");
    for entry in fs::read_dir(directory).expect("there").flatten() {
        let name = entry
            .path()
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(
            name.starts_with("progress_") || tests.contains(&format!("\"{name}\"")),
            "{name}"
        );
    }
}

#[test]
fn the_sampler_example_names_every_source() {
    let request: Sample = serde_json::from_value(example("sample")).expect("an example");
    let schema = schema_for!(Source);
    let known = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .expect("variants");
    assert_eq!(request.sources.len(), known.len());
    let odd = json!({"interval_ms": 10, "sources": ["gpu"], "output_directory": "/"});
    let error = serde_json::from_value::<Sample>(odd)
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("gpu") && error.contains("pressure"),
        "{error}"
    );
}

#[test]
fn what_may_be_left_out_is_what_the_documents_say() {
    let endpoint = json!({"kind": "sqlite", "path": "/d", "busy_timeout_ms": 1});
    let request: Sql =
        serde_json::from_value(json!({"endpoint": endpoint, "statements": []})).expect("enough");
    assert_eq!(request.connect_timeout_ms, 0);
    let request: TpccDrive = serde_json::from_value({
        let mut example = example("tpcc_drive");
        for field in ["duration_s", "transactions"] {
            example["drive"]
                .as_object_mut()
                .expect("an object")
                .remove(field);
        }
        example
    })
    .expect("which of the two is missing is the engine's to say");
    assert_eq!(
        (request.drive.duration_s, request.drive.transactions),
        (None, None)
    );
    for endpoint in [
        json!({"kind": "oracle"}),
        json!({}),
        json!({"kind": "sqlite", "path": "/d"}),
    ] {
        let error =
            serde_json::from_value::<TpccCheck>(json!({"endpoint": endpoint, "warehouses": 1}));
        assert!(error.is_err(), "{endpoint}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (field, value) in [
        ("warehouses", json!(-1)),
        ("warehouses", json!(4_294_967_296_u64)),
        ("warehouses", json!(1.5)),
        ("seed", json!(-1)),
        ("seed", json!("7")),
        ("threads", json!(null)),
    ] {
        let mut request = example("tpcc_load");
        request[field] = value.clone();
        assert!(
            serde_json::from_value::<TpccLoad>(request).is_err(),
            "{field} = {value}"
        );
    }
}

#[test]
fn a_profile_has_one_name_in_parameters_and_results() {
    let schema = schema_for!(Profile);
    let variants = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .expect("variants");
    assert_eq!(variants.len(), 11);
    for variant in variants {
        let profile: Profile = serde_json::from_value(variant["const"].clone()).expect("a profile");
        assert_eq!(variant["const"], profile.name());
    }
}

#[test]
fn every_kind_of_arrivals_has_an_example_and_refuses_what_it_does_not_know() {
    round_trip::<Vec<Arrivals>>("arrivals");
    let examples = example("arrivals");
    let examples = examples.as_array().expect("a list");
    let schema = schema_for!(Arrivals);
    let kinds = schema.get("oneOf").and_then(Value::as_array);
    assert_eq!(examples.len(), kinds.expect("a tagged enum").len());
    for example in examples {
        let mut odd = example.clone();
        odd["surprise"] = json!(1);
        let error = serde_json::from_value::<Arrivals>(odd).expect_err("refused");
        assert!(error.to_string().contains("surprise"), "{error}");
    }
}
