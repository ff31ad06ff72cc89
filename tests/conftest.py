"""Fixtures for tests of every folder."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support import page_cache, skips, tokens
from support.command_line import ceilings
from support.costs import Costs
from support.forking import end_origin, freeze, share_origin
from support.real_record import made_once, run_study

# A busy machine must fail no test, and neither must the draw of a day: the same examples every time.
# `HYPOTHESIS_PROFILE=default pytest tests/unit` looks for others.
settings.register_profile("steady", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


gc.set_threshold(50_000)  # tests live to the end: not all are looked through for garbage after every 700 objects

MACHINES = itertools.count()
HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
# The first makes the real record, which the others then find made.
FIRST = ("test_api.py", "test_settings_in_guest.py", "test_vm.py", "test_two_hosts.py")
# Ten seconds and more, outside of `end_to_end`: after these come only short ones, so that all workers end together.
LONG = {
    "test_attack.py",
    "test_beside_command.py",
    "test_calibrated_stopping.py",
    "test_calibration.py",
    "test_diagnostics.py",
    "test_diagnostics_last.py",
    "test_documentation.py",
    "test_drawing.py",
    "test_drive.py",
    "test_driving.py",
    "test_error_rates.py",
    "test_exchanging.py",
    "test_fidelity.py",
    "test_long_record.py",
    "test_loop.py",
    "test_mutants.py",
    "test_report_command.py",
    "test_second_opinion.py",
    "test_sequential.py",
    "test_stress.py",
    "test_studies_command.py",
    "test_thin_tails.py",
    "test_runner.py",
    "test_trying.py",
    "test_verify.py",
    "test_verify_real.py",
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test stands for a machine of its own: agents refuse to change one that another session is changing."""
    base = item.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    os.environ["FAIRTRIAL_MACHINE_DIRECTORY"] = str(base / f"machine-{next(MACHINES)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """A handler that stays would take the signal of a test that comes later, for which it then waits."""
    yield
    changed = {number: now for number in HANDLERS if (now := signal.getsignal(number)) != HANDLERS[number]}
    for number in changed:
        signal.signal(number, HANDLERS[number])
    assert not changed, "the test has left handlers of signals"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; what waits for the real record once there was time to make it, and unit tests last."""
    used: dict[Path, set[str]] = {}
    for item in items:
        used.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))
    items.sort(key=lambda item: _rank(item.path, used[item.path]))


def _rank(path: Path, fixtures: set[str]) -> int:
    if "end_to_end" not in path.parts:
        return len(FIRST) + (2 if path.name in LONG else 3)
    return FIRST.index(path.name) if path.name in FIRST else len(FIRST) + ("real_run" in fixtures)


def pytest_collection_finish() -> None:
    """What was imported lives to the end: no search for garbage looks through it, not even a worker's last ones."""
    freeze()


def pytest_sessionfinish() -> None:
    end_origin()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--costs", action="store_true", help="Print what each file of tests costs: wall and processor time."
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers are its children
        page_cache.keep()
        ceilings()
        if not config.getoption("--costs"):  # for which a command costs the worker that it belongs to
            share_origin()
    tokens.register(config)
    config.pluginmanager.register(skips, "skips")
    if config.getoption("--costs"):
        config.pluginmanager.register(Costs(), "costs")


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a real record, with its report. Read it; change a copy (`real_copy`)."""
    return made_once(tmp_path_factory, "real-record", run_study)


@pytest.fixture
def real_copy(real_run: Path, tmp_path: Path) -> Path:
    """A copy of the real record to damage."""
    copied = tmp_path / real_run.name
    shutil.copytree(real_run, copied)
    return copied
