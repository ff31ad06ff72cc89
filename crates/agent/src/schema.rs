//! The JSON Schema of everything that crosses between control plane and data plane.
//!
//! The schema is shaped for the generator of the Python types: the tag of a tagged enum stands inside the type it
//! tags, and every variant has a title (`WriteAction`, `FileOutput`) that becomes its class.

use fairtrial_protocol::{
    boot, event, file, govern, load, locks, oltp, request, sample, script, standing, state, step,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Schema of every type of the wire, as definitions of one document.
pub fn wire() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    root::<request::Request>(&mut generator);
    root::<request::ChunkHeader>(&mut generator);
    root::<event::Event>(&mut generator);
    root::<step::Step>(&mut generator);
    root::<boot::Boot>(&mut generator);
    root::<load::TpccLoad>(&mut generator);
    root::<load::Loaded>(&mut generator);
    root::<load::TpccDrive>(&mut generator);
    root::<load::Driven>(&mut generator);
    root::<load::Progress>(&mut generator);
    root::<load::TpccCheck>(&mut generator);
    root::<load::Checked>(&mut generator);
    root::<oltp::OltpLoad>(&mut generator);
    root::<oltp::OltpDrive>(&mut generator);
    root::<oltp::OltpCheck>(&mut generator);
    root::<script::ScriptLoad>(&mut generator);
    root::<script::ScriptPreflight>(&mut generator);
    root::<script::Preflighted>(&mut generator);
    root::<script::ScriptDrive>(&mut generator);
    root::<file::FileLoad>(&mut generator);
    root::<file::FileDrive>(&mut generator);
    root::<file::FileCountersOf>(&mut generator);
    root::<file::FileCounters>(&mut generator);
    root::<locks::LockDrive>(&mut generator);
    root::<locks::Contention>(&mut generator);
    root::<load::Sql>(&mut generator);
    root::<standing::SqlHold>(&mut generator);
    root::<standing::ServerOriginals>(&mut generator);
    root::<standing::SqlRestored>(&mut generator);
    root::<load::Ceiling>(&mut generator);
    root::<load::ClientCeiling>(&mut generator);
    root::<load::Rows>(&mut generator);
    root::<sample::Sample>(&mut generator);
    root::<govern::GovernPurge>(&mut generator);
    root::<govern::Decision>(&mut generator);
    root::<govern::Governed>(&mut generator);
    root::<state::Restore>(&mut generator);
    root::<state::Restored>(&mut generator);
    root::<sample::HttpGet>(&mut generator);
    root::<sample::HttpAnswer>(&mut generator);
    root::<state::Settle>(&mut generator);
    root::<state::Settled>(&mut generator);
    root::<state::Facts>(&mut generator);
    root::<state::Covariates>(&mut generator);
    let mut definitions = generator.take_definitions(true);
    let tagged: Vec<String> = definitions.keys().cloned().collect();
    for name in &tagged {
        move_tags_inside(&mut definitions, name);
    }
    definitions.values_mut().for_each(simplify_numbers);
    for messages in ["Event", "Progress", "Request"] {
        definitions.remove(messages); // Python names their members, which stay
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions,
    })
}

fn root<T: JsonSchema>(generator: &mut SchemaGenerator) {
    let _ = generator.subschema_for::<T>();
}

/// Gives each variant of a tagged enum a name: that of the type it wraps, which gets the tag, or its own.
fn move_tags_inside(definitions: &mut Map<String, Value>, name: &str) {
    let Some(variants) = definitions[name]
        .get("oneOf")
        .and_then(Value::as_array)
        .cloned()
    else {
        return;
    };
    let Some(tag) = variants.iter().find_map(tag_of) else {
        return;
    };
    let mut references = Vec::new();
    for variant in variants {
        let value = variant["properties"][&tag].clone();
        let reference = variant.get("$ref").and_then(Value::as_str);
        let inner = match reference {
            Some(reference) => reference.rsplit('/').next().unwrap_or_default().to_owned(),
            None => format!(
                "{}{name}",
                capitalised(value["const"].as_str().unwrap_or_default())
            ),
        };
        let mut definition = if reference.is_some() {
            definitions[&inner].clone()
        } else {
            variant.clone()
        };
        definition["properties"][&tag] = value;
        if reference.is_some() {
            let required = definition["required"]
                .as_array_mut()
                .expect("every message has a required number");
            required.insert(0, json!(tag));
        }
        references.push(json!({"$ref": format!("#/$defs/{inner}")}));
        definitions.insert(inner, definition);
    }
    let description = definitions[name]["description"].clone();
    definitions.insert(
        name.to_owned(),
        json!({"description": description, "oneOf": references, "discriminator": {"propertyName": tag}}),
    );
}

/// Drops what the generator of the Python types would make a class of its own for: bounds of the numbers inside lists
/// and mappings, and formats that JSON Schema does not know (`uint64`). The native side checks both anyway.
fn simplify_numbers(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("type") == Some(&json!("integer"))
                || map.get("type") == Some(&json!(["integer", "null"]))
            {
                map.remove("format");
            }
            for key in ["items", "additionalProperties"] {
                if let Some(Value::Object(inner)) = map.get_mut(key) {
                    inner.remove("minimum");
                }
            }
            map.values_mut().for_each(simplify_numbers);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify_numbers),
        _ => {}
    }
}

/// The property that every variant of a tagged enum holds as a constant.
fn tag_of(variant: &Value) -> Option<String> {
    let (name, _) = variant
        .get("properties")?
        .as_object()?
        .iter()
        .find(|(_, schema)| schema.get("const").is_some())?;
    Some(name.clone())
}

/// `ramp_up` as `RampUp`.
fn capitalised(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stand_inside_the_types_they_tag() {
        let schema = wire();
        assert_eq!(
            schema["$defs"]["Ping"]["properties"]["request"]["const"],
            "ping"
        );
        assert_eq!(
            schema["$defs"]["Ping"]["required"],
            json!(["request", "id"])
        );
        assert_eq!(
            schema["$defs"]["RampUpProgress"]["properties"]["progress"]["const"],
            "ramp_up"
        );
        let actions = schema["$defs"]["Action"]["oneOf"]
            .as_array()
            .expect("variants");
        assert!(actions.contains(&json!({"$ref": "#/$defs/WriteAction"})));
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let schema = wire();
        let definitions = schema["$defs"].as_object().expect("definitions");
        let text = schema.to_string();
        for reference in text.split("#/$defs/").skip(1) {
            let name = reference
                .split('"')
                .next()
                .expect("split gives one at least");
            assert!(definitions.contains_key(name), "{name}");
        }
    }
}
