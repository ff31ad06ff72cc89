"""Collecting mistakes: all of them are reported at once, each with its line and the nearest valid name.

Owns the wording of what pydantic finds. It must not know the study's keys.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from fairtrial.errors import InputError, Problem
from fairtrial.study.tree.nodes import KEY_MARK, Listing, Node, Path, Position, Scalar, Tree, dotted, locate, plain
from fairtrial.study.tree.quantities import with_unit_of

FILE_OF = "file_of"  # key of a validation's context; see `validate`
OF_STUDIES = "fix the lines listed above; with `fairtrial schema` your editor checks and completes every key"

_BELOW = "wrong_below"  # of an error; see `wrong_below`
_CLOSE = 0.6  # difflib's own default: closer misses typing errors, wider suggests nonsense
_CREDENTIALS = re.compile(r"(//|\b[^\s/:@']+:)[^/\s@]*@")  # of an address: what a message shows, logs keep
_LOOKED_THROUGH = 1000  # characters of a value, for credentials
_LISTED = 12  # names in a message; more hide the sentence
_SHOWN = 60  # characters of a found value; it stands at the position given anyway
_SCHEMAS_KEPT = 256  # one per kind, and those of several catalogues in a test
_TYPES = {"integer": "a whole number", "number": "a number", "string": "text", "object": "a mapping", "array": "a list"}
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "string_type": "text",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
}
_LENGTHS = {
    "too_short": ("at least", "min_length"),
    "too_long": ("at most", "max_length"),
    "string_too_short": ("at least", "min_length"),
    "string_too_long": ("at most", "max_length"),
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt name; empty if nothing known is near."""
    candidates = list(known)
    lower = {candidate.lower(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=_CLOSE)
    return f"did you mean `{lower[near[0]]}`?" if near else ""


def listed(names: Iterable[str]) -> str:
    """Names for a message: `a`, `b`, `c`."""
    every = list(names)
    shown = ", ".join(f"`{name}`" for name in every[:_LISTED]) or "nothing"
    return shown if len(every) <= _LISTED else f"{shown} and {len(every) - _LISTED} more"


def wrong_below(*path: str | int, message: str) -> PydanticCustomError:
    """What a validator of a whole model found at a path below it, to be raised there: it is noted at that line."""
    return PydanticCustomError(_BELOW, "{message}", {"message": message, "path": path})


def raise_all(wrong: Iterable[PydanticCustomError]) -> None:
    """Raises all that a validator of a whole model found with `wrong_below`; nothing if that is nothing.

    Raises:
        ValidationError: of all of them.
    """
    if lines := [InitErrorDetails(type=each, input=None) for each in wrong]:
        raise ValidationError.from_exception_data("", lines)


def brief(value: object) -> str:
    """A value as a message shows it; a number of a file as it is written."""
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing (null)"
    if isinstance(value, Scalar) and type(value.value) not in (int, float):
        return brief(value.value)
    text = value.text if isinstance(value, Scalar) else str(value).lower() if isinstance(value, bool) else repr(value)
    text = _CREDENTIALS.sub(r"\1…@", text[:_LOOKED_THROUGH])  # which takes quadratic time
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Problems:
    """The mistakes noted so far, each once, in the order found."""

    def __init__(self) -> None:
        self._noted: dict[Problem, None] = {}
        self._alone: set[Problem] = set()

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._noted)

    def __len__(self) -> int:
        return len(self._noted)

    def add(self, message: str, at: Position, *, field: Sequence[str] = (), suggestion: str = "") -> None:
        """Notes a mistake."""
        self.note(Problem(message, at.file, at.line, at.column, dotted(field), suggestion))

    def note(self, problem: Problem, *, alone: bool = False) -> None:
        """Notes a mistake, if it is not noted yet. `alone`: all others found at its place come from it."""
        self._noted.setdefault(problem)
        if alone:
            self._alone.add(problem)

    def unknown(self, what: str, name: str, known: Iterable[str], *, at: Position, field: Sequence[str]) -> None:
        """Notes a name that is none of those known."""
        names = list(known)
        expected = f"expected one of {listed(names)}" if names else "none is available"
        self.add(f"unknown {what} `{name}`; {expected}", at, field=field, suggestion=did_you_mean(name, names))

    def raise_if_any(self, *, hint: str = OF_STUDIES) -> None:
        """Raises all of them, in the order of the file, with a hint.

        Raises:
            InputError: there are any.
        """
        if self._noted:
            taken = {_place(problem) for problem in self._alone}
            kept = [each for each in self._noted if each in self._alone or _place(each) not in taken]
            raise InputError(sorted(kept, key=_place), hint=hint)


def _place(problem: Problem) -> tuple[str, int, int]:
    return problem.file, problem.line, problem.column


def validate(adapter: TypeAdapter[Any], value: Any, *, node: Node, prefix: Path, problems: Problems) -> Any | None:
    """Validates a value; what is wrong is noted at the lines of `node`, under the field `prefix`.

    Models that name files find the study file that does so in the context: `FILE_OF` → a function from a path in the
    value to the file in which it was written. `true` is not a number, whatever pydantic says: where the JSON Schema of
    the adapter allows numbers and not `true`, it is a mistake.

    Returns:
        The validated value, or None if anything was wrong.
    """
    validated, found = None, []
    try:
        validated = adapter.validate_python(value, context=_files(node))
    except ValidationError as error:
        found = list(_translated(error.errors(), adapter=adapter, node=node, prefix=prefix))
    told = {problem.field for problem in found}
    true = _true_for_numbers(adapter, value, node=node, prefix=prefix)
    found += [problem for problem in true if problem.field not in told]
    for problem in found:
        problems.note(problem)
    return None if found else validated


def note_in_part(adapter: TypeAdapter[Any], node: Node, *, prefix: Path, problems: Problems) -> None:
    """Notes what is wrong with a value, as `validate` does, that stays wrong whatever is merged over it elsewhere."""
    try:
        adapter.validate_python(plain(node), context=_files(node))
    except ValidationError as error:
        for problem in _translated(_lasting(error.errors(), node), adapter=adapter, node=node, prefix=prefix):
            problems.note(problem)


def _files(node: Node) -> dict[str, Callable[..., str]]:
    return {FILE_OF: lambda *path: locate(node, path)[1].file}


def _true_for_numbers(adapter: TypeAdapter[Any], value: Any, *, node: Node, prefix: Path) -> Iterator[Problem]:
    for location, truth in _truths(value):
        path, at = locate(node, location)
        types = list(dict.fromkeys(_types(_schemas(adapter, tuple(map(str, location))))))
        if {"integer", "number"} & set(types) and not {"boolean", ""} & set(types):
            expected = " or ".join(_TYPES[each] for each in types if each in _TYPES)
            message = f"expected {expected}, found {brief(truth)}"
            yield Problem(message, at.file, at.line, at.column, dotted((*prefix, *path)))


def _truths(value: Any, location: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Every `true` and `false` in a value, with where it is."""
    if isinstance(value, bool):
        yield location, value
    elif isinstance(value, Mapping | list):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _truths(each, (*location, key))


def _types(schemas: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The types of JSON that schemas allow; empty text: any, or those of listed values."""
    for schema in schemas:
        named = schema.get("type", "")
        yield from [named] if isinstance(named, str) else named


def _path_of(detail: ErrorDetails, node: Node) -> tuple[Path, Position]:
    return locate(node, (*detail["loc"], *detail.get("ctx", {}).get("path", ())))


def _lasting(details: list[ErrorDetails], node: Node) -> list[ErrorDetails]:
    """Not those of what is missing, of values that do not go together, nor of a union that one of these may decide."""
    open_types = {"missing", "union_tag_not_found", _BELOW}
    if any(detail["type"] == "missing" for detail in details):
        open_types |= {"value_error", "assertion_error"}  # of a validator that looked for it
    found = [(_path_of(detail, node)[0], detail) for detail in details]
    open_paths = [
        path
        for path, detail in found
        if detail["type"] in open_types
        or (detail["type"] != "extra_forbidden" and isinstance(_node_at(node, path), Tree))
    ]
    return [detail for path, detail in found if not any(each[: len(path)] == path for each in open_paths)]


def _translated(
    errors: Iterable[ErrorDetails], *, adapter: TypeAdapter[Any], node: Node, prefix: Path
) -> Iterable[Problem]:
    """Pydantic's errors as problems. Branches of a union that all failed become one sentence."""
    branches: dict[tuple[Path, Position], list[ErrorDetails]] = {}
    for detail in errors:
        path, at = _path_of(detail, node)
        if detail["type"] == "missing":
            path = (*path, str(detail["loc"][-1]))
        elif detail["type"] == "extra_forbidden":
            owner = _node_at(node, path[:-1])
            at = owner.where(path[-1]) if isinstance(owner, Tree) else at
        branches.setdefault((path, at), []).append(detail)
    for (path, at), details in branches.items():
        written = None if details[0]["loc"][-1:] == (KEY_MARK,) else _node_at(node, path)
        found = written if isinstance(written, Scalar) else details[0]["input"]
        message, suggestion = _worded(details, found=found, known=partial(keys_at, adapter, path[:-1]))
        yield Problem(message, at.file, at.line, at.column, dotted((*prefix, *path)), suggestion)


def _node_at(node: Node | None, path: Path) -> Node | None:
    for part in path:
        if isinstance(node, Listing):
            at = int(part)
            node = node.items[at] if at < len(node.items) else None  # of a list of fixed length, what is missing
        else:
            node = node.entries.get(part) if isinstance(node, Tree) else None
    return node


def _worded(details: list[ErrorDetails], *, found: object, known: Callable[[], list[str]]) -> tuple[str, str]:
    """A message and a suggestion. `found`: as it was written, where validation may have seen it converted."""
    first = details[0]
    if first["type"] == "missing":
        return "required but missing", ""
    if first["type"] == "extra_forbidden":
        names = known()
        key = str(first["loc"][-1])
        return f"unknown key; expected one of {listed(names)}", did_you_mean(key, names)
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return _tag_in_words(first)
    for detail in details:
        if detail["type"] == _BELOW:
            return str(detail["msg"]), ""
        if detail["type"] in ("value_error", "assertion_error"):
            return str(detail["msg"]).partition(", ")[2], ""
    expected = " or ".join(dict.fromkeys(_expected(detail, found) for detail in details))
    suggestion = ""
    if first["type"] == "literal_error":
        choices = [choice.strip("'") for choice in first["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        suggestion = did_you_mean(str(first["input"]), choices)
    shown = str(first["ctx"]["actual_length"]) if first["type"] == "too_long" else brief(found)
    return f"expected {expected}, found {shown}", suggestion


def _tag_in_words(detail: ErrorDetails) -> tuple[str, str]:
    """One of several models, chosen by a key that names none of them or is not there."""
    key = detail["ctx"]["discriminator"].strip("'")
    if detail["type"] == "union_tag_not_found":
        return f"`{key}` is required but missing", ""
    names = [name.strip("'") for name in detail["ctx"]["expected_tags"].split(", ")]
    tag = str(detail["ctx"]["tag"])
    return f"unknown {key} `{tag}`; expected one of {listed(names)}", did_you_mean(tag, names)


def _expected(detail: ErrorDetails, found: object) -> str:
    worded = _EXPECTED.get(detail["type"])
    if worded:
        return worded
    if detail["type"] in _LENGTHS:
        return _counted(detail)
    if detail["type"] == "string_pattern_mismatch":
        return f"text that matches {detail['ctx']['pattern']}"
    message = detail["msg"]
    if message.startswith(("Input should be greater", "Input should be less")):
        words, _, bound = message.replace("Input should be", "a value").rpartition(" ")
        (limit,) = detail["ctx"].values()
        return f"{words} {(isinstance(found, Scalar) and with_unit_of(found.text, limit)) or bound}"
    return message.removeprefix("Input should be ") if message.startswith("Input should be ") else f"({message})"


def _counted(detail: ErrorDetails) -> str:
    """What is too short or too long, as the number of its parts."""
    bound, key = _LENGTHS[detail["type"]]
    given, number = detail["input"], detail["ctx"][key]
    one, more = ("entry", "entries") if isinstance(given, Mapping) else ("item", "items")
    if isinstance(given, str):
        one, more = "character", "characters"
    return f"{bound} {number} {one if number == 1 else more}"


def keys_at(adapter: TypeAdapter[Any], path: Path) -> list[str]:
    """The keys that a schema names at a path, which may allow others."""
    return list(dict.fromkeys(key for schema in _schemas(adapter, path) for key in schema.get("properties", {})))


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _document(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    return adapter.json_schema()


def _schemas(adapter: TypeAdapter[Any], path: Path) -> list[dict[str, Any]]:
    """What a schema allows at a path, an entry for each alternative."""
    document = _document(adapter)
    definitions = document.get("$defs", {})
    here = _alternatives(document, definitions)
    for part in path:
        here = [
            alternative
            for schema in here
            for below in _below(schema, part)
            for alternative in _alternatives(below, definitions)
        ]
    return here


def _below(schema: dict[str, Any], part: str) -> Iterator[dict[str, Any]]:
    patterned = schema.get("patternProperties", {}).values()
    candidates = (schema.get("properties", {}).get(part), schema.get("additionalProperties"), schema.get("items"))
    return (below for below in (*candidates, *patterned) if isinstance(below, dict))


def _alternatives(schema: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    branches = [branch for key in ("anyOf", "oneOf", "allOf") for branch in schema.get(key, [])]
    return [schema] if not branches else [a for branch in branches for a in _alternatives(branch, definitions)]
