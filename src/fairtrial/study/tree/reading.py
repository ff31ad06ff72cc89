"""From YAML 1.2 text to nodes with positions: `on` and `off` are text, a key given twice is an error.

Owns reading files and `include`. It must not know any other key of a study.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StringMark, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent, Event, NodeEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.parser import Parser

from fairtrial import foreign
from fairtrial.errors import InputError, Problem
from fairtrial.study.tree.nodes import Listing, Node, Position, Scalar, Tree, plain
from fairtrial.study.tree.nodes import Path as Keys
from fairtrial.study.tree.problems import Problems, brief
from fairtrial.words import cut

LONGEST_SHOWN = 60  # characters of what was found
SECRET = "password"  # noqa: S105 - a key, whose value is not shown: what a message shows, logs keep
MAXIMUM_DEPTH = 40  # a study needs eight; an alias to its own parent would never end
MAXIMUM_NODES = 10_000  # the largest study seen has 300; aliases of aliases multiply
MAXIMUM_BYTES = 512 << 10  # the same, before parsing
MAXIMUM_FILES = 100  # files that each include the next one twice multiply, too
MAXIMUM_INTEGER = (1 << 64) - 1  # what the options of any server hold; longer ones take long to print

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = ("str", "timestamp", "value")  # a date is text to a study, and so is a lone `=`
_VALUE_TAGS = ("int", "float", "bool", "null")
_DIRECTIVE = re.compile(r"^%YAML", re.MULTILINE)  # 1.1 would make `on` true
_SYNTAX_HINT = "fix the YAML: indent with spaces; quote values that hold `: ` or start with one of > | * & % @ `"


@dataclass
class _Converter:
    """Turns ruamel's nodes into ours."""

    yaml: YAML
    file: str
    text: str
    problems: Problems
    nodes: int = 0

    def convert(self, node: Any, path: Keys = ()) -> Node:
        at = self._at(node)
        self.nodes += 1
        if len(path) > MAXIMUM_DEPTH or self.nodes > MAXIMUM_NODES:
            limit = f"{MAXIMUM_DEPTH} levels or {MAXIMUM_NODES} values"
            raise _refusal(f"more than {limit}; does an alias contain itself?", at)
        if isinstance(node, MappingNode):
            return self._tree(node, path)
        if isinstance(node, SequenceNode):
            items = (self.convert(item, (*path, str(index))) for index, item in enumerate(node.value))
            return Listing(tuple(items), at)
        return self._scalar(node, path)

    def _at(self, node: Any) -> Position:
        return Position(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def _tree(self, node: MappingNode, path: Keys) -> Tree:
        entries: dict[str, Node] = {}
        key_at: dict[str, Position] = {}
        for key_node, value_node in node.value:
            at = self._at(key_node)
            if not isinstance(key_node, ScalarNode) or key_node.tag == f"{_TAG}merge":
                suggestion = "for `<<`, use include or a level"
                self.problems.add("a key must be plain text", at, field=path, suggestion=suggestion)
                continue
            key = self._text(key_node, path)
            here = (*path, key)
            value = self.convert(value_node, here)
            if key in entries:
                first = f"first at {key_at[key].line}:{key_at[key].column}"
                message = f"key `{key}` is given twice ({first})"
                self.problems.add(message, at, field=here, suggestion="keep one of them")
                continue
            entries[key], key_at[key] = value, at
        return Tree(entries, self._at(node), key_at)

    def _text(self, node: ScalarNode, path: Keys) -> str:
        """As written; half of a surrogate pair, which an escape can name, is no text that anybody could print.

        Raises:
            InputError: a NUL in it, which ends every text that the system takes.
        """
        text = str(node.value)
        if "\0" in text:
            message = "no file name, command line or option can hold a NUL (`\\0`)"
            raise _refusal(message, self._at(node), hint="leave it out")
        printable = text.encode(errors="replace").decode()
        if printable != text:
            suggestion = "write the character itself"
            self.problems.add("a surrogate is not a character", self._at(node), field=path, suggestion=suggestion)
        return printable

    def _scalar(self, node: ScalarNode, path: Keys) -> Scalar:
        at = self._at(node)
        tag = str(node.tag).removeprefix(_TAG)
        text = self._text(node, path)
        if tag in _TEXT_TAGS:
            written = self.text[node.start_mark.index : node.end_mark.index]
            return Scalar(text, text, at, written)
        if tag not in _VALUE_TAGS:
            self.problems.add(f"the YAML tag `{node.tag}` is not supported", at, field=path)
            return Scalar(text, text, at)
        secret = path[-1:] == (SECRET,)
        found = "…" if secret else brief(text)
        try:
            value = self.yaml.constructor.construct_object(node)
        except (ValueError, LookupError):  # a tag that the text does not fit, or thousands of digits
            self.problems.add(f"expected a value of the tag `{tag}`, found {found}", at, field=path)
            return Scalar(text, text, at)
        if isinstance(value, float) and not math.isfinite(value):
            shown = found if secret else cut(text, LONGEST_SHOWN)
            self.problems.add(f"expected a finite number, found {shown}", at, field=path)
            return Scalar(text, text, at)
        if isinstance(value, int) and abs(value) > MAXIMUM_INTEGER:
            self.problems.add(f"expected a number below 2^64, found {found}", at, field=path)
            return Scalar(text, text, at)
        return Scalar(value, text, at)


def _refusal(message: str, at: Position, *, hint: str = "fix the file") -> InputError:
    return InputError([Problem(message, at.file, at.line, at.column)], hint=hint)


def parse(text: str, *, file: str, problems: Problems) -> Node | None:
    """Parses one YAML document; None if it is empty.

    Raises:
        InputError: it is no YAML, or too large.
    """
    root, noted = _parsed(text, file)
    for each in noted:
        problems.note(each, alone=True)
    return root


@lru_cache(maxsize=32)  # of one study at all its sizes; trees are immutable
def _parsed(text: str, file: str) -> tuple[Node | None, tuple[Problem, ...]]:
    if len(text) > MAXIMUM_BYTES:
        raise _too_large(file)
    if _DIRECTIVE.search(text):
        raise _refusal("a %YAML directive; studies are YAML 1.2", Position(file), hint="remove the directive")
    yaml = YAML(typ="safe", pure=True)
    yaml.Parser = _Counting
    try:
        root = yaml.compose(text)
    except _TooMuchError as error:
        raise _refusal(str(error), Position(file, error.mark.line + 1, error.mark.column + 1)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file)
        context = f" {error.context}" if error.context else ""
        raise _refusal(f"not YAML: {error.problem}{context}", at, hint=_SYNTAX_HINT) from error
    except (YAMLError, RecursionError, ValueError, OverflowError) as error:  # of escapes that name no character, too
        raise _refusal(f"not YAML: {error}", Position(file), hint=_SYNTAX_HINT) from error
    problems = Problems()
    return None if root is None else _Converter(yaml, file, text, problems).convert(root), tuple(problems)


def _too_large(file: str) -> InputError:
    return _refusal(f"larger than {MAXIMUM_BYTES >> 10} KiB: not a study", Position(file))


class _TooMuchError(YAMLError):
    """More levels or values than a study has, at this mark."""

    def __init__(self, limit: str, mark: StringMark) -> None:
        super().__init__(f"more than {limit}")
        self.mark = mark


class _Counting(Parser):
    """Ends before thousands of values inside each other are composed, which takes minutes."""

    depth = nodes = 0

    def get_event(self) -> Event:
        """The next event."""
        event: Event = super().get_event()
        self.depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        self.nodes += isinstance(event, NodeEvent)
        if self.depth > MAXIMUM_DEPTH + 1:
            raise _TooMuchError(f"{MAXIMUM_DEPTH} levels", event.start_mark)
        if self.nodes > MAXIMUM_NODES:
            raise _TooMuchError(f"{MAXIMUM_NODES} values", event.start_mark)
        return event


def read_documents(path: Path, problems: Problems) -> list[Tree]:
    """Reads a study file and all it includes.

    Returns:
        Mappings without their `include`, those included before those that include them.

    Raises:
        InputError: a file cannot be read, is no YAML, or includes itself.
    """
    return _read(path, problems, chain=(), at=Position(str(path)), left=iter(range(MAXIMUM_FILES)))


def read_tree(path: Path, problems: Problems, *, at: Position) -> Tree:
    """Reads one file that holds a mapping; `at` is where it was named.

    Raises:
        InputError: it cannot be read, or is no YAML or no mapping.
    """
    root = parse(_text(path, at), file=str(path), problems=problems)
    if not isinstance(root, Tree):
        what = "nothing" if root is None else brief(plain(root))
        raise _refusal(f"expected a mapping, found {what}", root.at if root else Position(str(path)))
    return root


def _read(path: Path, problems: Problems, *, chain: tuple[Path, ...], at: Position, left: Iterator[int]) -> list[Tree]:
    if next(left, None) is None:
        raise _refusal(f"more than {MAXIMUM_FILES} files are included", at, hint="include each file once")
    resolved = path.resolve()
    if resolved in chain:
        names = " → ".join(link.name for link in (*chain[chain.index(resolved) :], resolved))
        raise _refusal(f"files include each other in a circle: {names}", at, hint="remove one of the includes")
    root = read_tree(path, problems, at=at)
    documents: list[Tree] = []
    for included in _includes(root, problems):
        target = path.parent / included.text
        documents += _read(target, problems, chain=(*chain, resolved), at=included.at, left=left)
    return [*documents, root.without("include")]


def _text(path: Path, at: Position) -> str:
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise _too_large(str(path))
        if at.line:  # named by a file, not by the user, who may name a pipe
            return foreign.read_text(path, encoding="utf-8-sig", most_bytes=MAXIMUM_BYTES)
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = "check the path, which is relative to " + ("the file that names it" if at.line else "this directory")
        raise _refusal(f"cannot read {path}: {error.strerror}", at, hint=hint) from error
    except UnicodeDecodeError as error:
        raise _refusal(f"not UTF-8 at byte {error.start}", Position(str(path)), hint="save it as UTF-8") from error


def _includes(root: Tree, problems: Problems) -> list[Scalar]:
    node = root.entries.get("include")
    items = node.items if isinstance(node, Listing) else () if node is None else (node,)
    names: list[Scalar] = []
    for item in items:
        if isinstance(item, Scalar) and isinstance(item.value, str):
            names.append(item)
        else:
            problems.add(f"expected a file or a list of files, found {brief(plain(item))}", item.at, field=("include",))
    return names
