"""Pages, tables, and what a model's docstring says about its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Any

import jinja2
from pydantic import BaseModel

from fairtrial.study.reference import MARKER, cell, type_in_words


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells may hold anything but line breaks, which become blanks."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(cell(text) for text in row)} |" for row in rows)])


def summary(model: type[BaseModel]) -> str:
    """A docstring's text up to its list of attributes, as one paragraph."""
    return " ".join(cleandoc(model.__doc__ or "").partition("\nAttributes:")[0].split())


def attributes(model: type[BaseModel]) -> Mapping[str, str]:
    """The `Attributes:` of a docstring: name → text. `low, high: …` says the same of both."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in cleandoc(model.__doc__ or "").partition("\nAttributes:\n")[2].splitlines():
        start = re.match(r"^    (\w[\w, ]*): (.*)$", line)
        if start:
            names = start[1].split(", ")
            found |= dict.fromkeys(names, start[2])
        else:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: text.rstrip(".") for name, text in found.items()}


def fields(model: type[BaseModel], *, also: Mapping[str, str] | None = None) -> str:
    """A table of a model's fields: name, type, meaning. `also` says what the docstring leaves out."""
    schema = model.model_json_schema()
    said = {**attributes(model), **(also or {})}
    shown = ((name, field) for name, field in schema["properties"].items() if not model.model_fields[name].exclude)
    return table(
        ("field", "value", "meaning"),
        ((f"`{name}`", value(field, schema), said.get(name, "")) for name, field in shown),
    )


def part(model: type[BaseModel]) -> str:
    """A small model as an item of a list: its name, its fields with their types, what it is."""
    schema = model.model_json_schema()
    said = attributes(model)
    named = (
        f"`{name}` ({value(field, schema)}{f': {said[name]}' if name in said else ''})"
        for name, field in schema["properties"].items()
    )
    return f"- **{model.__name__}**: {summary(model)} Fields: {'; '.join(named)}."


def value(field: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """A field's type in words, `null` included."""
    nullable = any(branch.get("type") == "null" for branch in field.get("anyOf", ()))
    return type_in_words(field, root) + (" or `null`" if nullable else "")


def render(name: str, **content: Any) -> str:
    """A page from its template in `pages/`, under the marker of generated pages."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "pages"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - Markdown, from our own words
    )
    text = environment.get_template(f"{name}.jinja").render(content)
    body = re.sub(r"\n{3,}", "\n\n", text).strip()
    return f"{MARKER}\n\n{body}\n"
