"""The modules of a crate import each other in one direction, as import-linter has it for Python's rooms."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[1] / "crates"
NOISE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|#\[cfg\(test\)\]\nmod \w+ \{.*?\n\}', re.DOTALL)
USE = re.compile(r"(\bpub(?:\([^)]*\))? )?\buse ([^;]+);")
GROUP = re.compile(r"([\w:]+::)\{([^{}]*)\}")
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")

Name = tuple[str, ...]


def module(file: Path) -> Name:
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] in {"lib", "main", "mod"} else parts


def flat(tree: str) -> list[str]:
    """Every path of a `use`, its groups written out."""
    while group := GROUP.search(tree):
        names = [name.strip() for name in group[2].split(",") if name.strip()]
        tree = tree.replace(group[0], ", ".join(group[1] + name for name in names))
    return [path.strip().removesuffix("::self") for path in tree.split(",")]


def absolute(path: str, at: Name, modules: dict[Name, str]) -> Name | None:
    """From the crate's root; none for other crates and for what is not a path to a module."""
    parts = tuple(path.split("::"))
    if parts[0] == "crate":
        return parts[1:]
    base = at
    while parts and parts[0] in {"self", "super"}:
        base, parts = base[: len(base) - (parts[0] == "super")], parts[1:]
    return base + parts if parts != tuple(path.split("::")) or (*at, parts[0]) in modules else None


def imports(crate: Path) -> dict[Name, set[Name]]:
    """Which modules each module names; what a module imports or passes on counts as where it is defined."""
    modules = {module(file.relative_to(crate)): NOISE.sub("", file.read_text()) for file in crate.rglob("*.rs")}
    names: dict[Name, Name] = {}
    named: dict[Name, list[Name]] = {}
    for at, text in modules.items():
        uses = [(exported, path) for exported, tree in USE.findall(text) for path in flat(" ".join(tree.split()))]
        paths = [path.partition(" as ")[0] for exported, path in uses if not exported] + PATH.findall(USE.sub("", text))
        named[at] = [target for path in paths if (target := absolute(path, at, modules)) is not None]
        for _, path in uses:
            source, _, alias = path.partition(" as ")
            if (target := absolute(source, at, modules)) is not None and target not in modules:
                names[(*at, alias or target[-1])] = target

    def home(path: Name) -> Name:
        for length in range(len(path), -1, -1):
            if path[:length] in modules:
                return path[:length]
            if path[:length] in names and names[path[:length]] != path[:length]:
                return home(names[path[:length]] + path[length:])
        return ()

    return {at: {home(target) for target in targets} - {at} for at, targets in named.items()}


@pytest.mark.parametrize("crate", sorted(path.parent.name for path in CRATES.glob("*/src")))
def test_no_module_imports_in_a_circle(crate: str) -> None:
    graph = imports(CRATES / crate / "src")
    assert len(graph) > 1
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"crates/{crate}: " + " → ".join("::".join(name) or crate for name in error.args[1]))
