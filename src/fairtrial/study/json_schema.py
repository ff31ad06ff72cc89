"""The JSON Schema of study files, for editors: the file's own model with every kind of a catalogue in its place.

Owns the difference between a value and a part of one: whatever may come from an include, a level or a size is not
required here, and `null` (which removes) is allowed. `load` is stricter: it sees the merged study.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.study.catalogue import Catalogue, Kind
from fairtrial.study.designs.numeric_factors import OF, VALUES
from fairtrial.study.file_model import NOT_IN_SIZES, TEXTS_AS_WRITTEN, StudyFile
from fairtrial.study.resolved import Network
from fairtrial.study.resolving import kinds
from fairtrial.study.tree.merging import KIND_SECTIONS, SECTIONS
from fairtrial.study.tuning import SECTION
from fairtrial.study.workload_place import NETWORK, PLACE, WORKLOAD
from fairtrial.study.workload_place import SECTION as WORKLOAD_PLACE

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ALWAYS_NEEDED = ("study", "workload", "factors", "metrics")  # place and system have defaults
IS_NUMERIC: Schema = {
    "anyOf": [
        {"required": [VALUES], "properties": {VALUES: {"type": "array"}}},
        {"required": [OF], "properties": {OF: {"type": ["string", "array"]}}},
    ],
    "type": "object",
}
NUMERIC_FACTOR: Schema = {
    "type": "object",
    "properties": {
        VALUES: {"type": "array", "items": {"type": ["number", "string"]}, "minItems": 1},
        OF: {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
    },
    "additionalProperties": {"type": "null"},  # levels that a size removes
}
_DEMANDS = ("required", "minProperties", "minItems", "title")  # what a part need not keep to, and noise


def schema(catalogue: Catalogue) -> Schema:
    """JSON Schema (draft 2020-12) of a study file that may name the catalogue's kinds."""
    file = StudyFile.model_json_schema(ref_template="#/$defs/{model}")
    definitions: Schema = {name: _part(definition) for name, definition in file["$defs"].items()}
    for section, known in kinds(catalogue).items():
        definitions[section] = _section(section, known, definitions)
    place = {"$ref": f"#/$defs/{PLACE}"}
    definitions[WORKLOAD]["properties"] |= _part(Network.model_json_schema())["properties"] | {
        PLACE: {"anyOf": [place, {"type": "array", "items": place, "minItems": 2}]}
    }
    properties: Schema = {name: _part(field) for name, field in file["properties"].items()}
    for section in SECTIONS:
        if section in (WORKLOAD_PLACE, NETWORK):
            continue
        reference = {"$ref": f"#/$defs/{section}"}
        definitions["Overlay"]["properties"][section] = reference
        properties[section] = reference | {"description": properties[section]["description"]}
    properties["study"] = file["properties"]["study"]
    properties |= {name: _as_written(properties[name]) for name in TEXTS_AS_WRITTEN}
    names = file["properties"]["study"]["pattern"]
    levels = _names_to({"$ref": "#/$defs/Overlay"}, names)
    factor = {"if": IS_NUMERIC, "then": NUMERIC_FACTOR, "else": levels}
    properties["factors"] = _names_to(factor, names, description=properties["factors"]["description"])
    for names_or_one in (*definitions["Metrics"]["properties"].values(), properties["also_compare"]):
        names_or_one["type"] = [*names_or_one["type"], "string"]
    also = properties["also_compare"]
    properties["also_compare"] = _as_written(also) | {"items": _as_written(also["items"])}
    definitions["Size"] = {
        "type": ["object", "null"],
        "description": "A partial study.",
        "properties": {name: field for name, field in properties.items() if name not in NOT_IN_SIZES},
        "additionalProperties": False,
    }
    properties["sizes"] = _names_to({"$ref": "#/$defs/Size"}, names, description=properties["sizes"]["description"])
    return {
        "$schema": DIALECT,
        "title": "fairtrial study",
        "description": file["description"],
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "if": {"not": {"anyOf": [{"required": ["include"]}, {"required": [SECTION]}]}},
        "then": {
            "required": list(ALWAYS_NEEDED),
            "properties": {"metrics": {"required": ["primary"]}},
            "if": {"properties": {"trials": {"required": ["design"]}}, "required": ["trials"]},  # a screening
            "else": {"required": ["arm"]},
        },
        "$defs": definitions,
    }


def _section(section: str, known: Mapping[str, Kind], definitions: Schema) -> Schema:
    """One kind, or any number of settings; each kind's own definitions move under its name."""
    properties: Schema = {}
    for name, kind in known.items():
        prefix = f"{section}.{name}"
        own = kind.parameters.json_schema(ref_template=f"#/$defs/{prefix}.{{model}}")
        for model, definition in own.pop("$defs", {}).items():
            definitions[f"{prefix}.{model}"] = _part(definition)
        definitions[prefix] = _part(own) | {"description": kind.summary}
        properties[name] = {"$ref": f"#/$defs/{prefix}"}
    one = {"minProperties": 1} if section in KIND_SECTIONS else {}
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False, **one}


def _part(schema: Schema) -> Schema:
    """The schema of a part of a value: nothing is required, and `null` may stand for any of it.

    `items` stay as they are: lists replace whole, so what stands in one is complete.
    """
    part = {key: value for key, value in schema.items() if key not in _DEMANDS}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in part:
            part[key] = [_part(branch) for branch in part[key]]
    for key in ("properties", "patternProperties"):
        if key in part:
            part[key] = {name: _part(field) for name, field in part[key].items()}
    if isinstance(part.get("additionalProperties"), dict):
        part["additionalProperties"] = _part(part["additionalProperties"])
    if "patternProperties" in part:
        part.setdefault("additionalProperties", False)
    if isinstance(part.get("type"), str) and part["type"] != "null":
        part["type"] = [part["type"], "null"]
    if "const" in part:
        part["enum"] = [part.pop("const")]
    if "enum" in part:
        part["enum"] = [*part["enum"], None]
    return part


def _as_written(schema: Schema) -> Schema:
    """The schema of a text that may look like a number, which `load` takes as it is written."""
    if "anyOf" in schema:
        return schema | {"anyOf": [_as_written(branch) for branch in schema["anyOf"]]}
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return schema | {"type": [*types, "number"] if "string" in types else types}


def _names_to(value: Schema, pattern: str, *, description: str = "") -> Schema:
    """A mapping from names of factors, levels or sizes."""
    mapping = {"type": ["object", "null"], "propertyNames": {"pattern": pattern}, "additionalProperties": value}
    return mapping | ({"description": description} if description else {})
