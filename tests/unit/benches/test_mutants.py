"""How `benches/mutants.py` draws, finds its lines again, runs tests and compares."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import mutants as bench
import pytest
from mutation import python
from mutation.rooms import Room, Step, name_of, rooms, shares
from mutation.running import GONE, KILLED, NOT_COMPILED, SURVIVED, TIMED_OUT, Result, Scratch
from mutation.sites import Mutant, applied, drawn, line_of, mutants
from support.command_line import eventually

SOURCE = """\
def least(a, b):
    if a < b:
        return a
    return b


def most(a, b):
    if a < b:
        return b
    return a
"""
TESTS = """\
import pytest
from fairtrial.plan.few import waits

def test_waits():
    assert waits(3) == 3

def test_fails_without_a_mutant():
    assert not waits(3)
"""
WAITS = """\
def waits(n):
    done = 0
    spare = 7
    while done != n:
        done += 1
    return done
"""


def of(source: str, file: str = "src/fairtrial/plan/few.py") -> list[Mutant]:
    return mutants(file, source, python.edits(source))


def test_a_mutant_changes_its_line_and_no_other() -> None:
    (_, second) = (each for each in of(SOURCE) if each.operator == "< to <=")
    assert line_of(second, SOURCE) == 8
    assert applied(second, SOURCE) == "if a <= b".join(SOURCE.rsplit("if a < b", 1))


def test_a_mutant_is_found_behind_edits_elsewhere() -> None:
    (_, second) = (each for each in of(SOURCE) if each.operator == "< to <=")
    assert line_of(second, "import os\n\n" + SOURCE.replace("    ", "  ")) == 10


def test_a_mutant_whose_line_changed_is_gone() -> None:
    (_, second) = (each for each in of(SOURCE) if each.operator == "< to <=")
    changed = SOURCE.replace("if a < b", "if a > b", 1)
    assert line_of(second, changed) is None
    assert applied(second, changed) is None


def test_a_seed_keeps_its_order_when_other_lines_change() -> None:
    before = [each.key for each in drawn(of(SOURCE), 1)]
    added = SOURCE + "\n\ndef other(a):\n    return a is None\n"
    after = [each.key for each in drawn(of(added), 1) if "a is None" not in each.text]
    assert sorted(before) == sorted(after)
    by_operator = {each.operator for each in of(SOURCE)}
    for operator in by_operator:
        assert [key for key in before if key[3] == operator] == [key for key in after if key[3] == operator]
    assert [each.key for each in drawn(of(SOURCE), 2)] != before


def test_operators_take_turns_and_lines_come_once() -> None:
    source = "".join(f"a[{n}] = b\n" for n in range(9)) + "c(d)\ne < f\n"
    order = list(drawn(of(source), 1))
    kinds = [each.operator.removesuffix("+ 1").removesuffix("- 1") for each in order]
    assert set(kinds[:5]) == {"constant ", "assignment deleted", "call deleted", "< to <="}
    assert len({each.text for each in order}) == len(order) == 11


def test_every_room_gets_two_and_large_ones_the_rest() -> None:
    given = shares([Room("a", "Rust", 900), Room("b", "Rust", 100), Room("c", "Rust", 1)], 16)
    assert given == {"a": 11, "b": 3, "c": 2}


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("src/fairtrial/words.py", ("Python", "fairtrial")),
        ("src/fairtrial/history/noise.py", ("Python", "history")),
        ("crates/state/src/restore/file.rs", ("Rust", "state")),
        ("crates/load/src/population.rs", ("Rust", "load/population")),
        ("crates/load/src/population/pace.rs", ("Rust", "load/population")),
        ("crates/load/src/tpcc/populate/tests/shape.rs", None),
        ("crates/load/src/reactor/tests.rs", None),
        ("crates/load/tests/noop.rs", None),
        ("scripts/a.py", None),
    ],
)
def test_a_file_belongs_to_a_room(file: str, room: tuple[str, str] | None) -> None:
    assert name_of(Path(file)) == room


def test_this_project_has_every_room() -> None:
    root = Path(__file__).parents[3]
    names = {room.name for room in rooms(root)}
    folders = {
        each.name for each in (root / "src/fairtrial").iterdir() if each.is_dir() and list(each.glob("[a-z]*.py"))
    }
    crates = {each.name for each in (root / "crates").iterdir()}
    assert folders | crates <= names
    assert {"load/driver", "load/reactor", "agent/serve"} <= names


def result(mutant: Mutant, outcome: str) -> Result:
    return Result("plan", "Python", mutant, 1, outcome, 1.0)


def test_runs_are_compared_by_the_mutants_both_count() -> None:
    first, second, third = of(SOURCE)[:3]
    before = [result(first, KILLED), result(second, KILLED), result(third, KILLED)]
    after = [result(first, SURVIVED), result(second, TIMED_OUT), result(third, GONE)]
    lines = list(bench.compared(before, after))
    assert lines[:2] == [
        "before: 2 of 2 killed (100 %), 0 of them by the time limit",
        "after:  1 of 2 killed (50 %), 1 of them by the time limit",
    ]
    assert [line.split(":")[0] for line in lines[2:]] == ["killed before, survived now", "killed before, timed out now"]


def test_what_does_not_compile_does_not_count() -> None:
    first, second = of(SOURCE)[:2]
    *_, both, dropped = bench.summary([result(first, NOT_COMPILED), result(second, KILLED)])
    assert both == "both: 1 of 1 killed (100 %), 0 of them by the time limit"
    assert dropped == "not counted: 1 that do not compile"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one room, one of whose tests fails."""
    root = tmp_path / "project"
    files = {"src/fairtrial/plan/few.py": WAITS, "src/fairtrial/plan/__init__.py": "", "src/fairtrial/__init__.py": ""}
    for name, text in {**files, "tests/unit/plan/test_few.py": TESTS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "--quiet"), ("add", "."), (*author, "commit", "--quiet", "--message", "a room")):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def test_mutants_of_an_earlier_run_are_tried_on_this_commit(
    project: Path, tmp_path: Path, *, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A test that fails anyway is left out, the checkout stays as it was, and a second run repeats nothing."""
    wanted = {("return done", "return None"), ("spare = 7", "constant + 1"), ("done += 1", "assignment deleted")}
    earlier = [each for each in of("import os\n" + WAITS) if (each.text, each.operator) in wanted]
    lost = replace(earlier[0], text="spare = 8")
    before, out = tmp_path / "before.json", tmp_path / "after.json"
    written = bench.Outcomes(before, commit="", seed=1, total=4)
    for each in (*earlier, lost):
        written.add(result(each, KILLED))
    monkeypatch.setattr(bench, "ROOT", project)
    arguments = [f"--from={before}", f"--compare={before}", f"--out={out}", "--timeout=5"]
    monkeypatch.setattr("sys.argv", ["mutants.py", *arguments])
    assert bench.main() == 0
    assert {each.mutant.text: each.outcome for each in bench.read(out)} == {
        "return done": KILLED,
        "spare = 7": SURVIVED,
        "done += 1": TIMED_OUT,
        "spare = 8": GONE,
    }
    assert (project / "src/fairtrial/plan/few.py").read_text(encoding="utf-8") == WAITS
    printed = capfd.readouterr().out
    assert "left out, failed without a mutant: tests/unit/plan/test_few.py::test_fails" in printed
    assert "killed before, survived now: src/fairtrial/plan/few.py:3" in printed
    assert bench.main() == 0
    assert "] " not in capfd.readouterr().out


def test_a_scratch_that_is_stopped_ends_what_runs_and_tells_no_outcome(project: Path, tmp_path: Path) -> None:
    scratch = Scratch(project, "HEAD", tmp_path / "scratch")
    begun = tmp_path / "begun"
    command = ("sh", "-c", f"touch {begun}; sleep 1000")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(scratch.run, Step(command, "--deselect"), limit_s=1000)
        eventually(begun.exists, "the step runs")
        scratch.stop()
        with pytest.raises(RuntimeError, match="stopped"):
            running.result()
