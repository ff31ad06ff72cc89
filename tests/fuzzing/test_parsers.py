"""Every reader of foreign bytes gives a result or the project's own error, quickly and in little memory.

`make test-long` fuzzes each for a minute; here are a dozen fixed inputs of each, and whatever was found before.
"""

from __future__ import annotations

import gzip
import secrets
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from support.fuzzing.campaign import fuzz
from support.fuzzing.child import Child
from support.fuzzing.judging import MOST_BYTES, Target, judge
from support.fuzzing.mutating import KINDS, mutations
from support.fuzzing.targets import TARGETS, examined

from fairtrial.errors import InputError, Problem

CORPUS = Path(__file__).parent / "corpus"
FOUND = [path for path in sorted(CORPUS.glob("*/*")) if path.is_file()]
MINUTE_S = 60.0


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_dozen_inputs_near_real_ones(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = TARGETS[name]
    examples = {"record": 2, "yaml": 3}.get(target.kind, 12)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(mutations(target.kind, target.seeds()))
    def examine(content: bytes) -> None:
        examined(name, content, tmp_path_factory.mktemp("input") / "files")

    examine()


@pytest.mark.parametrize("path", FOUND, ids=[f"{path.parent.name}-{path.name}" for path in FOUND])
def test_what_was_found_stays_mended(path: Path, tmp_path: Path) -> None:
    examined(path.parent.name, gzip.decompress(path.read_bytes()), tmp_path / "files")


def test_every_corpus_is_of_a_target() -> None:
    assert {path.parent.name for path in FOUND} <= TARGETS.keys()
    assert {target.kind for target in TARGETS.values()} <= KINDS.keys()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_minute_of_each(name: str, tmp_path: Path) -> None:
    seed = secrets.randbelow(1 << 30)
    campaign = fuzz(TARGETS[name], seconds=MINUTE_S, seed=seed)
    kept = campaign.keep(tmp_path)
    assert campaign.examples
    assert not kept, f"seed {seed}: {[verdict.what for _, verdict in campaign.finds.values()]}; inputs: {kept}"


def unreadable(message: str, hint: str = "fix it") -> None:
    raise InputError([Problem(message, "file")], hint=hint)


def spends(seconds_of_loops: int) -> int:
    return sum(range(seconds_of_loops))


FAULTS = {
    "crash": lambda _content, _directory: {}["nothing"],
    "slow": lambda _content, _directory: spends(3_000_000),
    "memory": lambda _content, _directory: len(bytearray(MOST_BYTES + (32 << 20))),
    "wording": lambda _content, _directory: unreadable("x", hint=" "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_judge_sees(fault: str, tmp_path: Path) -> None:
    target = Target("any", "bytes", seeds=lambda: [b""], read=FAULTS[fault], most_s=0.001 if fault == "slow" else 5.0)
    assert judge(target, b"", tmp_path).fault == fault


@pytest.mark.parametrize("message", ["", "\ud800"])
def test_the_judge_sees_an_error_that_says_nothing_or_cannot_be_printed(message: str, tmp_path: Path) -> None:
    def read(_content: bytes, _directory: Path) -> None:
        raise InputError([Problem(message, "")] if message else [], hint="fix it")

    assert judge(Target("any", "bytes", seeds=lambda: [b""], read=read), b"", tmp_path).fault == "wording"


def test_an_error_with_a_hint_is_as_it_should_be(tmp_path: Path) -> None:
    target = Target("any", "bytes", seeds=lambda: [b""], read=lambda _content, _directory: unreadable("not a number"))
    assert judge(target, b"", tmp_path).fault == ""


def test_what_hangs_is_ended() -> None:
    with Child(hang_s=0.01) as child:  # it has not even started by then
        assert child.judge("console", b"").fault == "hang"
