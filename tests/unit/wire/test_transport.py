"""The stream to a program's standard input and output."""

import os
import signal
from pathlib import Path

import pytest
from support.command_line import eventually

from fairtrial.wire import Limits
from fairtrial.wire.transport import SAID_BYTES, PipeTransport


def test_a_closed_stream_may_be_closed_again_and_neither_reads_nor_writes() -> None:
    stream = PipeTransport(["cat"])
    stream.write(b"here")
    assert stream.read() == b"here"
    stream.close()
    stream.close()
    assert stream.read() == b""
    with pytest.raises(BrokenPipeError, match="the stream was closed"):
        stream.write(b"gone")


def test_what_is_said_without_end_does_not_fill_the_disk() -> None:
    stream = PipeTransport(["sh", "-c", "head -c 4000000 /dev/zero >&2; echo; cat"])
    stream.read()
    stream.write(b"x")
    assert stream.read() == b"x"
    assert os.fstat(stream._errors.fileno()).st_size == SAID_BYTES
    stream.close()


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! >{tmp_path}/child; echo up; wait"
    stream = PipeTransport(["sh", "-c", script], limits=Limits(end_s=0.1))
    assert stream.read() == b"up\n"
    stream.close()
    eventually(lambda: not _runs(int((tmp_path / "child").read_text())), "the child still runs")


def test_an_agent_that_was_heard_is_left_to_undo_alone(tmp_path: Path) -> None:
    script = f"echo up; until [ -e {tmp_path}/go ]; do sleep 0.01; done; touch {tmp_path}/undone"
    stream = PipeTransport(["sh", "-c", script], limits=Limits(end_s=0.01), is_agent=True)
    assert stream.read() == b"up\n"
    stream.close()
    (tmp_path / "go").touch()
    eventually((tmp_path / "undone").exists, "it was killed")
    stream._program.wait()


def test_an_agent_that_was_silent_is_killed() -> None:
    stream = PipeTransport(["sleep", "600"], limits=Limits(end_s=0.01, silence_s=1e-9), is_agent=True)
    stream.close()
    assert stream._program.returncode == -signal.SIGKILL


def _runs(pid: int) -> bool:
    """Whether it does; who has it now may not have reaped it."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):  # before the file was opened, or after
        return False
