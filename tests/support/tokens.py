"""Tokens: no more tests compute than there are of them, however many workers; one that runs alone has them all.

`docs/explanation/developing.md` explains the scheme. A token is a lock on a file: the kernel gives it back when a
worker dies.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

DIRECTORY = "fairtrial_tokens"  # what the controller tells its workers
TOKENS_A_PROCESSOR = 3  # a test of a server or a guest uses less than half of one, and waits for disks
LOOK_EVERY_S = 0.01


class Controller:
    """Makes the tokens of one run and tells its workers where they are."""

    def __init__(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="fairtrial-tokens-")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Before a worker starts."""
        node.workerinput[DIRECTORY] = self.directory

    def pytest_unconfigure(self) -> None:
        """After the last worker has ended."""
        shutil.rmtree(self.directory, ignore_errors=True)


class Worker:
    """Holds the tokens that a test needs while it runs, its fixtures included."""

    def __init__(self, directory: Path, *, tokens: int) -> None:
        self.directory = directory
        self.tokens = tokens

    # First of all wrappers: the time limit of a test begins when it has its tokens.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Around set-up, call and tear-down of a test."""
        with held(self.directory, count=needed(item, self.tokens), of=self.tokens):
            return (yield)


def number_of_tokens() -> int:
    """Of this machine."""
    return TOKENS_A_PROCESSOR * len(os.sched_getaffinity(0))


def needed(item: pytest.Item, tokens: int) -> int:
    """How many tokens a test takes, by its markers."""
    if item.get_closest_marker("waits") is not None:
        return 0
    return tokens if item.get_closest_marker("alone") is not None else 1


@contextmanager
def held(directory: Path, *, count: int, of: int) -> Iterator[None]:
    """Takes `count` of the tokens in a directory, and gives them back.

    Who wants some waits for its turn first. So nobody takes a token while a test that runs alone gathers all of them,
    and two that gather cannot wait for each other.
    """
    with ExitStack() as tokens:
        if count:
            with (directory / "turn").open("w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                taken: set[int] = set()
                while len(taken) < count:
                    free = (number for number in range(of) if number not in taken)
                    found = next((number for number in free if _take(directory / str(number), tokens)), None)
                    if found is None:
                        time.sleep(LOOK_EVERY_S)
                    else:
                        taken.add(found)
        yield


def _take(path: Path, tokens: ExitStack) -> bool:
    with ExitStack() as refused:
        token = refused.enter_context(path.open("w"))
        try:
            fcntl.flock(token, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        tokens.push(refused.pop_all())
    return True


def register(config: pytest.Config) -> None:
    """Makes this process what it is: a controller, one of its workers, or one that runs all tests itself."""
    told = getattr(config, "workerinput", {}).get(DIRECTORY)
    if told is not None:
        config.pluginmanager.register(Worker(Path(told), tokens=number_of_tokens()), "tokens")
    elif getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Controller(), "tokens")
