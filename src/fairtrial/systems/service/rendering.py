"""A service's options in its own format, and what is handed in, where its command lines name it."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from fairtrial.errors import InputError, Problem
from fairtrial.study.tree.quantities import PLACEHOLDER
from fairtrial.systems.service.parameters import OPTIONS, Configuration, Option

BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")  # of TOML


def filled(text: str, handed_in: Mapping[str, str]) -> str:
    """A text with what is handed in; braces around anything else stay."""
    return PLACEHOLDER.sub(lambda match: handed_in.get(match[1], match[0]), text)


def argv(command: str, handed_in: Mapping[str, str], *, flags: tuple[str, ...] = ()) -> list[str]:
    """A command line as words. What is handed in never makes two words of one; `{options}` becomes the flags."""
    words: list[str] = []
    for word in shlex.split(command):
        words += flags if word == f"{{{OPTIONS}}}" else [filled(word, handed_in)]
    return words


def flags(configuration: Configuration | None, options: Mapping[str, Option]) -> tuple[str, ...]:
    """Options as words of a command line: `--key=value`."""
    if configuration is None or configuration.format != "flags":
        return ()
    return tuple(f"--{name}={value_text(value)}" for name, value in options.items())


def environment(configuration: Configuration | None, options: Mapping[str, Option]) -> dict[str, str]:
    """Options as variables."""
    if configuration is None or configuration.format != "environment":
        return {}
    return {name: value_text(value) for name, value in options.items()}


def document(configuration: Configuration, options: Mapping[str, Option], handed_in: Mapping[str, str]) -> str:
    """The content of the configuration file.

    Raises:
        InputError: its text is not a document of its format.
    """
    values = {name: value_text(value) for name, value in options.items()}
    if configuration.format == "template":
        return filled(configuration.text, {**handed_in, **values})
    text = filled(configuration.text, handed_in)
    if text and not text.endswith("\n"):
        text += "\n"
    match configuration.format:
        case "space":
            text += "".join(f"{name} {value}\n" for name, value in values.items())
        case "equals":
            text += "".join(f"{name}={value}\n" for name, value in values.items())
        case "ini":
            text += _ini(values)
        case "toml":
            text += "".join(f"{_toml_key(name)} = {_toml(value)}\n" for name, value in options.items())
        case "yaml" | "json" as kind:
            text = _nested(kind, text, options)
    return text


def value_text(value: Option) -> str:
    """A value as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ini(values: Mapping[str, str]) -> str:
    """Lines of the options without a section, then each section; a section's name may have dots, a key has none."""
    sections: dict[str, list[str]] = {"": []}
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        sections.setdefault(section, []).append(f"{key} = {value}\n")
    return "".join(f"[{name}]\n" * bool(name) + "".join(lines) for name, lines in sections.items() if lines)


def _toml_key(name: str) -> str:
    return ".".join(part if BARE_KEY.fullmatch(part) else _toml(part) for part in name.split("."))


def _toml(value: Option) -> str:
    """A value as TOML 1.0 writes it: a string has no surrogates and no bare DEL, and a number may be `inf` or `nan`."""
    if isinstance(value, float):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _nested(kind: str, text: str, options: Mapping[str, Option]) -> str:
    yaml = YAML(typ="rt" if kind == "yaml" else "safe")
    try:
        root: Any = yaml.load(text) or {}
        for name, value in options.items():
            *above, last = name.split(".")
            table = root
            for part in above:
                table = table.setdefault(part, {})
            table[last] = value
        if kind == "json":
            return json.dumps(root, indent=2, allow_nan=False) + "\n"
    except (YAMLError, AttributeError, TypeError, ValueError) as error:
        problem = Problem(
            f"the text and the options make no {kind} document: {error}",
            "the study",
            field="system.service.configuration.text",
        )
        raise InputError([problem], hint="give a mapping, in which options are keys between dots") from error
    written = io.StringIO()
    yaml.dump(root, written)
    return written.getvalue()
