"""What the pages say exists, exists; what exists is on a page. Names are collected from the code, never listed here."""

from __future__ import annotations

import ast
import json
import pkgutil
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from support.command_line import desk

from fairtrial import errors, plan, study
from fairtrial.analyse.models import DOUBT_CODES
from fairtrial.analyse.result import Verdict
from fairtrial.catalogue import catalogue
from fairtrial.cli import command
from fairtrial.report.document import REPORT_FORMAT_VERSION
from fairtrial.study.reference import MARKER
from fairtrial.wire import find_agent

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fairtrial"
REFERENCE = ROOT / "docs" / "reference"
VARIABLE = re.compile(r"\bFAIRTRIAL_[A-Z_]+[A-Z]\b")


def tracked(*patterns: str) -> list[Path]:
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listing = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listing.splitlines() if (ROOT / name).is_file()]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


PAGES = tracked("*.md")


def words(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def code_names(path: Path) -> set[str]:
    """Everything that stands alone between backquotes."""
    return set(re.findall(r"`([^`\n]+)`", words(path)))


def running_text(path: Path) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```", "", words(path), flags=re.MULTILINE | re.DOTALL)


def fenced(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", words(path), re.MULTILINE | re.DOTALL)


def trees() -> Iterator[ast.Module]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield ast.parse(words(path))


# Generated pages.


def test_generated_pages_are_not_stale(tmp_path: Path) -> None:
    """If this fails: make generate."""
    subprocess.run([ROOT / "scripts" / "generate-reference", tmp_path], check=True)
    fresh = {path.name: words(path) for path in tmp_path.iterdir()}
    committed = {path.name: words(path) for path in REFERENCE.glob("*.md") if words(path).startswith(MARKER)}
    stale = [name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name)]
    assert not stale, f"run scripts/generate-reference: {stale}"


# What exists is on a page.


def commands() -> dict[tuple[str, ...], Any]:
    """Every command by the words that call it; `()` is the program itself."""
    found: dict[tuple[str, ...], Any] = {}

    def walk(command: Any, path: tuple[str, ...]) -> None:
        found[path] = command
        for name, below in getattr(command, "commands", {}).items():
            walk(below, (*path, name))

    walk(command(), ())
    return found


COMMANDS = commands()


@pytest.mark.parametrize("path", [path for path in COMMANDS if path], ids=" ".join)
def test_every_command_and_its_options_are_on_the_page(path: tuple[str, ...]) -> None:
    page = words(REFERENCE / "commands.md")
    section = re.search(rf"^## `fairtrial {' '.join(path)}\b.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section
    options = [spelling for parameter in COMMANDS[path].params for spelling in parameter.opts if spelling[0] == "-"]
    assert [spelling for spelling in options if f"`{spelling}" not in section[0]] == []


def test_every_place_system_workload_and_setting_is_on_the_page() -> None:
    known = catalogue()
    text = words(REFERENCE / "study.md")
    names = [*known.places, *known.systems, *known.workloads, *known.settings]
    assert [name for name in names if f"### `{name}`" not in text] == []
    assert [name for name in known.settings if f"## `{name}`" not in words(REFERENCE / "settings.md")] == []


def test_every_metric_is_on_the_page() -> None:
    known = catalogue()
    defined = dict(known.telemetry_metrics)
    for kind in known.workloads.values():
        defined |= kind.metrics(kind.parameters.validate_python(kind.example))
    listed = code_names(REFERENCE / "metrics.md")
    assert len(defined) > 50
    assert sorted(set(defined) - listed) == []


def raised_doubts() -> set[str]:
    """Codes of every `Doubt(code="…")` in the code."""
    calls = [node for tree in trees() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Doubt"]
    keywords = [keyword.value for call in named for keyword in call.keywords if keyword.arg == "code"]
    return {value.value for value in keywords if isinstance(value, ast.Constant) and isinstance(value.value, str)}


def test_every_doubt_is_explained_and_nothing_else_is() -> None:
    explained = re.findall(r"^### `(\w+)`$", words(REFERENCE / "doubts.md"), re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert set(explained) == raised_doubts() | set(DOUBT_CODES)
    assert sorted(set(explained) - code_names(ROOT / "docs" / "explanation" / "methodology.md")) == []


def test_every_doubt_says_what_is_seen_why_it_matters_and_what_to_do() -> None:
    sections = re.split(r"^### ", words(REFERENCE / "doubts.md"), flags=re.MULTILINE)[1:]
    for section in sections:
        assert re.findall(r"^- \*\*(\w+):\*\*", section, re.MULTILINE) == ["Seen", "Matters", "Do"], section


def test_every_verdict_is_explained() -> None:
    text = words(ROOT / "docs" / "explanation" / "methodology.md")
    verdicts = ["no verdict" if verdict == "none" else verdict for verdict in get_args(Verdict)]
    assert [verdict for verdict in verdicts if f"**{verdict}**" not in text] == []


def exit_codes() -> set[int]:
    """Of every error class, and every number the command line exits with."""
    pending, codes = [errors.FairtrialError], {0}
    while pending:
        each = pending.pop()
        codes.add(each.exit_code)
        pending += each.__subclasses__()
    for path in (SOURCE / "cli").rglob("*.py"):
        tree = ast.parse(words(path))
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "sys.exit":
                given = node.args[0]
                named = isinstance(given, ast.Name) and constants.get(given.id, getattr(errors, given.id, None))
                value = named or getattr(given, "value", None)
                codes |= {value} if isinstance(value, int) else set()
    return codes


def test_every_exit_code_is_on_the_page_and_no_other() -> None:
    table = re.findall(r"^\| (\d+) \|", words(REFERENCE / "commands.md"), re.MULTILINE)
    assert {int(code) for code in table} == exit_codes()


def test_every_environment_variable_is_on_the_page_and_no_other() -> None:
    code = [*SOURCE.rglob("*.py"), *ROOT.glob("crates/*/src/**/*.rs")]
    used = {name for path in code for name in VARIABLE.findall(words(path))}
    assert used
    assert {name for name in code_names(REFERENCE / "commands.md") if VARIABLE.fullmatch(name)} == used


def test_every_room_of_the_house_is_on_the_plan() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {"api", "catalogue"}
    crates = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    rooms -= {"studies"}  # data
    assert sorted((rooms | crates) - code_names(ROOT / "docs" / "explanation" / "architecture.md")) == []


def test_every_subcommand_of_the_agent_is_on_the_plan() -> None:
    shown = subprocess.run([find_agent(), "--help"], check=True, capture_output=True, text=True).stdout
    listed = shown.partition("Commands:\n")[2].partition("\n\n")[0]
    names = {line.split()[0] for line in listed.splitlines()} - {"help"}
    assert {"serve", "tpcc-drive"} <= names
    assert sorted(names - code_names(ROOT / "docs" / "explanation" / "architecture.md")) == []


# What the pages say, holds.


def slug(heading: str) -> str:
    """A heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", running_text(path), re.MULTILINE):
        base, number = slug(heading), 0
        while (anchor := f"{base}-{number}" if number else base) in found:
            number += 1
        found.add(anchor)
    return found


def broken_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", running_text(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield target


def test_every_link_and_picture_resolves() -> None:
    assert len(PAGES) > 25
    assert [(name_of(page), target) for page in PAGES for target in broken_links(page)] == []


def test_every_page_that_code_refers_to_exists() -> None:
    code = tracked("src/*.py", "tests/*.py", "scripts/*", "crates/*.rs", "*.toml", "Makefile")
    named = {(path, name) for path in code for name in re.findall(r"\bdocs/[\w./-]*\w", words(path))}
    assert any("decisions" in name for _, name in named)
    assert [(name_of(path), name) for path, name in named if not list(ROOT.glob(f"{name}*"))] == []


def test_no_page_names_a_path_of_its_authors_machine() -> None:
    named = {name_of(page): re.findall(r"/(?:work|root|home)/\w+", words(page)) for page in PAGES}
    assert [(name, paths) for name, paths in named.items() if paths] == []


STUDIES = [(page, text) for page in PAGES for text in fenced(page, "yaml") if re.search(r"^study:", text, re.MULTILINE)]


def test_readme_and_tutorial_hold_a_whole_study() -> None:
    assert {"README.md", "docs/first-study.md"} <= {name_of(page) for page, _ in STUDIES}


@pytest.mark.parametrize(("page", "text"), STUDIES, ids=[name_of(page) for page, _ in STUDIES])
def test_every_study_on_a_page_loads_and_can_claim_something(page: Path, text: str, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(text, encoding="utf-8")
    loaded = study.load(file, catalogue=catalogue())
    for size in loaded.file.sizes:
        study.load(file, catalogue=catalogue(), size=size)
    assert loaded.name, page
    if loaded.file.tune is None:
        warnings = plan.make(loaded, catalogue=catalogue()).warnings
        assert [warning for warning in warnings if "can claim nothing" in warning] == []


def test_the_parts_of_the_tutorial_are_its_study() -> None:
    *parts, whole = fenced(ROOT / "docs" / "first-study.md", "yaml")
    assert len(parts) > 1
    assert [line for part in parts for line in part.splitlines() if line not in whole.splitlines()] == []


PROGRAMS = [(page, text) for page in PAGES for text in fenced(page, "python")]


@pytest.mark.parametrize(("page", "text"), PROGRAMS, ids=[name_of(page) for page, _ in PROGRAMS])
def test_python_on_a_page_runs_on_a_real_record(page: Path, text: str, real_run: Path) -> None:
    text, replaced = re.subn(r"""(?<=read\(")runs/[^"]+""", str(real_run), text)
    assert replaced, f"{name_of(page)}: no record is read"
    lines = [line.partition("  #")[0] for line in text.splitlines()]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)  # the words of our own pages
    for line in lines:
        if line.startswith("run."):
            assert eval(line, namespace) is not None, line


def shown_commands() -> Iterator[tuple[Path, str]]:
    """Every `fairtrial …` of the pages: in running text, and as a line of a block that is typed."""
    for page in PAGES:
        inline = re.findall(r"`(fairtrial(?: [^`]*)?)`", running_text(page))
        typed = [line for block in fenced(page, "(?:sh|text)") for line in block.splitlines()]
        typed = [line.removeprefix("$ ").partition(" #")[0] for line in typed]
        for text in (*inline, *(line for line in typed if line.startswith("fairtrial "))):
            yield page, text


def mistake(page: Path, text: str) -> str:
    """What is wrong with a command that a page shows; empty if nothing is."""
    given = [word for word in shlex.split(text)[1:] if word not in ("[OPTIONS]", "…")]
    path: tuple[str, ...] = ()
    while given and (*path, given[0]) in COMMANDS:
        path, given = (*path, given[0]), given[1:]
    if not path and [word for word in given if word[0] != "-"]:
        return f"no command {given[0]}"
    flags = {spelling: getattr(each, "is_flag", False) for each in COMMANDS[path].params for spelling in each.opts}
    arguments = [each for each in COMMANDS[path].params if each.param_type_name == "argument"]
    places = len(words(page)) if any(each.nargs == -1 for each in arguments) else len(arguments)
    while given:
        word = given.pop(0)
        if word.startswith("-") and word not in ("-", "--help"):
            if word not in flags:
                return f"{word} is no option of fairtrial {' '.join(path)}"
            given = given if flags[word] else given[1:]
        elif word != "--help":
            places -= 1
    return "too many arguments" if places < 0 else ""


def test_every_command_shown_exists_with_its_options() -> None:
    shown = list(shown_commands())
    assert len(shown) > 100
    wrong = [(name_of(page), text, found) for page, text in shown if (found := mistake(page, text))]
    assert wrong == []


def test_every_call_of_our_own_that_is_named_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"`(fairtrial(?:\.\w+)+)\(", running_text(page))}
    assert "fairtrial.locks.announcement_in" in named
    assert [name for name in sorted(named) if not callable(pkgutil.resolve_name(name))] == []


def test_the_format_of_a_report_in_the_changelog_is_its_own() -> None:
    (version,) = re.findall(r"The format of `report\.json` is (\d+)", words(ROOT / "CHANGELOG.md"))
    assert int(version) == REPORT_FORMAT_VERSION


def test_every_make_target_shown_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", words(ROOT / "Makefile"), re.MULTILINE))
    inline = {target for page in PAGES for target in re.findall(r"`make ([a-z]+)", running_text(page))}
    typed = "".join(block for page in PAGES for block in fenced(page, "sh"))
    shown = inline | set(re.findall(r"^make ([a-z]+)", typed, re.MULTILINE))
    assert {"demo", "test"} <= shown
    assert shown <= targets


def test_every_bench_is_on_its_page() -> None:
    text = words(ROOT / "benches" / "README.md")
    assert [name_of(path) for path in tracked("benches/*.py") if name_of(path) not in text] == []


def test_every_decision_has_a_number_of_its_own() -> None:
    pages = tracked("docs/decisions/*.md")
    numbers = [number for page in pages for number in re.findall(r"^## (\d{4}):", words(page), re.MULTILINE)]
    assert sorted(numbers) == [f"{number:04}" for number in range(1, len(numbers) + 1)]


ANALYSED = re.compile(
    r"^fairtrial (analyse studies/published/.*)\n```\n(?:[^`]|`[^`]+`)*?^```text\n([^`]+)^```", re.MULTILINE
)


def test_what_pages_print_of_published_data_is_what_is_printed() -> None:
    shown = [each for page in PAGES for each in ANALYSED.findall(words(page))]
    assert len(shown) >= 3
    with desk() as here:
        lines = {line: line.replace("studies/", f"{SOURCE}/studies/").split() for line, _ in shown}
        printed = {line: here.fairtrial(*argv) for line, argv in lines.items()}
    for line, block in shown:
        assert " ".join(block.split()) in " ".join(printed[line].stdout.split())


def test_the_study_of_the_readme_runs_to_a_verdict() -> None:
    (text,) = [text for page, text in STUDIES if page.name == "README.md"]
    with desk() as here:
        file = here.study(text, name="own.yaml")
        here.fairtrial("plan", file)
        shown = here.fairtrial("run", file, "--set", "trials.blocks=2", drawn=True).stdout
        report = json.loads((here.run / "report" / "report.json").read_text(encoding="utf-8"))
        assert "report.html" in shown
        verdicts = {
            each["verdict"] for cell in report["analysis"]["cells"] for each in cell["comparisons"]["elapsed_s"]
        }
        assert verdicts
        assert verdicts <= set(get_args(Verdict)) - {"none"}
        here.fairtrial("verify", here.run)
