//! The JSON Schema of everything that crosses between control plane and data plane.
//!
//! The schema is shaped for the generator of the Python types: the tag of a tagged enum stands inside the type it
//! tags, and every variant has a title (`WriteAction`, `FileOutput`) that becomes its class.

use fairtrial_protocol::{event, load, request, sample, state, step};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Schema of every type of the wire, as definitions of one document.
pub fn wire() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let _ = root::<request::Request>(&mut generator);
    let _ = root::<request::ChunkHeader>(&mut generator);
    let _ = root::<event::Event>(&mut generator);
    let _ = root::<step::Step>(&mut generator);
    let _ = root::<load::TpccLoad>(&mut generator);
    let _ = root::<load::Loaded>(&mut generator);
    let _ = root::<load::TpccDrive>(&mut generator);
    let _ = root::<load::Driven>(&mut generator);
    let _ = root::<load::Progress>(&mut generator);
    let _ = root::<load::TpccCheck>(&mut generator);
    let _ = root::<load::Checked>(&mut generator);
    let _ = root::<load::Sql>(&mut generator);
    let _ = root::<load::Rows>(&mut generator);
    let _ = root::<sample::Sample>(&mut generator);
    let _ = root::<state::Restore>(&mut generator);
    let _ = root::<state::Restored>(&mut generator);
    let _ = root::<state::Settle>(&mut generator);
    let _ = root::<state::Settled>(&mut generator);
    let _ = root::<state::Facts>(&mut generator);
    let mut definitions = generator.take_definitions(true);
    eprintln!("{}", serde_json::to_string_pretty(&definitions).unwrap());
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Wire", "$defs": definitions})
}

fn root<T: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}
