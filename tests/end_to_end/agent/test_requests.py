"""What an agent does for those who ask: processes, files, settings; the real binary over a real pipe."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.machines.machine import alone_with

from fairtrial.errors import AgentError, PlaceError
from fairtrial.places import open_place
from fairtrial.protocol.generated import FileCountersOf, FileOutput, NullOutput, Step
from fairtrial.protocol.subcommands import FILE_COUNTERS
from fairtrial.wire import Agent, find_agent, run_native

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run processes as others, mount, and set sysctls")
WAIT_S = 60.0


@pytest.fixture
def agent(here: Desk) -> Iterator[Agent]:
    with open_place("local", {"state_directory": str(here.state)}, holder="this test") as found:
        yield found


def write_step(path: Path, value: str, *, expect: str | None = None) -> Step:
    return Step.model_validate(
        {
            "name": path.name,
            "action": {"kind": "write", "path": str(path), "value": value},
            "check": {"read": {"kind": "file", "path": str(path)}, "expect": expect or value},
            "inverse": {"kind": "restore"},
        }
    )


def output_of(agent: Agent, *argv: str, user: str | None = None, processors: list[int] | None = None) -> list[str]:
    process = agent.spawn(argv[0], argv, user=user, processors=processors)
    lines = [line for _, line in process.lines()]
    assert process.wait(WAIT_S).code == 0, lines
    return lines


def test_an_agent_says_who_it_is(agent: Agent, here: Desk) -> None:
    assert agent.hello.agent_sha256 == hashlib.sha256(find_agent().read_bytes()).hexdigest()
    assert agent.hello.state_directory == str(here.state)
    assert agent.hello.leftovers.undone == agent.hello.leftovers.killed == 0


def test_a_process_tells_its_lines_its_end_and_what_it_used(agent: Agent) -> None:
    seen: list[tuple[str, str]] = []
    script = "echo out; echo err >&2; printf %s last; exit 7"
    process = agent.spawn("it", ["sh", "-c", script], on_line=lambda stream, line: seen.append((stream, line)))
    exited = process.wait(WAIT_S)
    assert (exited.code, exited.signal) == (7, None)
    assert [line for stream, line in seen if stream == "stdout"] == ["out", "last"]
    assert ("stderr", "err") in seen
    assert process.started_ns < exited.time_ns
    assert exited.usage.max_resident_bytes > 0
    assert process.exited == exited


def test_the_last_of_many_lines_comes_before_the_end(agent: Agent) -> None:
    process = agent.spawn("many", ["seq", "50000"])
    lines = [line for _, line in process.lines()]
    assert lines == [str(number) for number in range(1, 50001)]


def test_output_goes_to_files_where_asked_and_input_comes_from_the_request(agent: Agent, tmp_path: Path) -> None:
    text = "line\n" * 100_000  # more than a pipe holds
    for _ in range(2):
        process = agent.spawn(
            "cat", ["cat"], stdin=text, stdout=FileOutput(path=str(tmp_path / "out")), stderr=NullOutput()
        )
        process.wait(WAIT_S)
    assert (tmp_path / "out").read_text() == text * 2


def test_environment_and_directory_are_as_asked(agent: Agent, tmp_path: Path) -> None:
    process = agent.spawn(
        "it", ["sh", "-c", "echo $COLOUR; pwd"], environment={"COLOUR": "red"}, directory=str(tmp_path)
    )
    assert [line for _, line in process.lines()] == ["red", str(tmp_path)]


def test_a_process_is_alone_in_its_group_and_not_protected_from_memory_pressure(agent: Agent) -> None:
    process = agent.spawn("it", ["sh", "-c", "cat /proc/self/oom_score_adj; ps -o pgid= -p $$"])
    score, group = [line.strip() for _, line in process.lines()]
    assert score == Path("/proc/self/oom_score_adj").read_text().strip()
    assert group == str(process.pid)


def test_a_process_gets_the_processors_it_may_use(agent: Agent) -> None:
    last = max(os.sched_getaffinity(0))
    assert output_of(agent, "grep", "Cpus_allowed_list", "/proc/self/status", processors=[last]) == [
        f"Cpus_allowed_list:\t{last}"
    ]


@AS_ROOT
def test_a_process_runs_as_another_user_with_that_users_groups_only(agent: Agent) -> None:
    assert output_of(agent, "id", "-un", user="nobody") == ["nobody"]
    assert output_of(agent, "id", "-G", user="nobody") == output_of(agent, "id", "-G", "nobody")
    assert output_of(agent, "fairtrial-agent", "--version", user="nobody")[0].startswith("fairtrial-agent ")


def test_signals_reach_the_process_or_its_whole_group(agent: Agent) -> None:
    alone = agent.spawn("it", ["sh", "-c", "trap 'echo got it; exit 4' USR1; echo ready; while :; do sleep 0.01; done"])
    lines = alone.lines()
    assert next(lines) == ("stdout", "ready")
    alone.signal(signal.SIGUSR1)
    assert next(lines) == ("stdout", "got it")
    assert alone.wait(WAIT_S).code == 4
    alone.signal(signal.SIGUSR1)  # it has just ended: no error

    group = agent.spawn("it", ["sh", "-c", "sleep 1000 & echo $!; wait"])
    child = int(next(group.lines())[1])
    group.signal(signal.SIGKILL, group=True)
    assert group.wait(WAIT_S).signal == signal.SIGKILL
    eventually(lambda: not Path(f"/proc/{child}").exists(), "the group was not killed")


def test_what_cannot_be_started_is_said(agent: Agent, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="no-such-program") as missing:
        agent.spawn("it", ["no-such-program"])
    assert missing.value.code == "not_found"
    with pytest.raises(AgentError, match="no-such-user") as user:
        agent.spawn("it", ["true"], user="no-such-user")
    assert user.value.code == "not_found"
    with pytest.raises(AgentError, match="elsewhere"):
        agent.spawn("it", ["true"], directory=str(tmp_path / "elsewhere"))
    with pytest.raises(AgentError, match="argv is empty") as empty:
        agent.spawn("it", [])
    assert empty.value.code == "invalid"
    assert output_of(agent, "echo", "still there") == ["still there"]


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 3_000_001])
def test_a_file_of_any_size_goes_there_and_back(agent: Agent, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    path = tmp_path / "new" / "directories" / "file"
    agent.put(str(path), content, mode=0o640)
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o7777 == 0o640
    assert agent.get(str(path)) == content
    (tmp_path / "local").write_bytes(content)
    agent.put(str(path), tmp_path / "local")
    agent.get_to(str(path), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_kernel_interfaces_that_report_no_size_are_read_whole(agent: Agent) -> None:
    assert agent.get("/proc/version") == Path("/proc/version").read_bytes()


def test_files_that_cannot_be_read_or_written_are_said_and_the_stream_goes_on(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    for act in (
        lambda: agent.get(str(tmp_path / "missing")),
        lambda: agent.get("relative/path"),
        lambda: agent.get(str(tmp_path)),
        lambda: agent.put(str(tmp_path / "file" / "below"), os.urandom(200_000)),
    ):
        with pytest.raises(AgentError):
            act()
    assert output_of(agent, "echo", "still there") == ["still there"]


def test_many_threads_may_ask_at_once(agent: Agent, tmp_path: Path) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        content = bytes([number]) * 300_000
        agent.put(str(tmp_path / str(number)), content)
        if agent.get(str(tmp_path / str(number))) != content or output_of(agent, "echo", str(number)) != [str(number)]:
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_settings_are_applied_read_back_and_undone_newest_first(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "setting"
    path.write_text("first\n")
    assert (agent.change(write_step(path, "second")).before, path.read_text()) == ("first\n", "second")
    assert agent.change(write_step(path, "third")).applied == 2
    assert (agent.undo(keep=1).steps, path.read_text()) == (1, "second")
    undone = agent.undo()
    assert (undone.steps, undone.failed, undone.disturbed) == (1, [], [])
    assert path.read_text() == "first\n"


def test_a_choice_in_brackets_is_restored_by_its_word(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "enabled"
    path.write_text("always [madvise] never\n")
    agent.change(write_step(path, "never"))
    agent.undo()
    assert path.read_text() == "madvise"


def test_a_value_that_does_not_read_back_is_undone_and_named(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "setting"
    path.write_text("before")
    with pytest.raises(AgentError, match='expected "other", found "asked"') as failure:
        agent.change(write_step(path, "asked", expect="other"))
    assert failure.value.code == "check"
    assert path.read_text() == "before"
    assert agent.undo().steps == 0


def test_a_setting_that_someone_else_changed_meanwhile_is_reported(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "setting"
    path.write_text("before")
    agent.change(write_step(path, "asked"))
    path.write_text("meddled")
    assert agent.undo().disturbed == ["setting"]
    assert path.read_text() == "before"


def test_programs_make_and_undo_what_files_cannot(agent: Agent, tmp_path: Path) -> None:
    made = tmp_path / "made"
    step = Step.model_validate(
        {
            "name": "made",
            "action": {"kind": "execute", "argv": ["touch", str(made)]},
            "check": {"read": {"kind": "output", "argv": ["ls", str(made)]}, "expect": str(made)},
            "inverse": {"kind": "execute", "argv": ["rm", str(made)]},
        }
    )
    with pytest.raises(AgentError, match="cannot access"):  # the check has nothing to read before
        agent.change(step)
    agent.change(step.model_copy(update={"check": None}))
    assert made.exists()
    agent.undo()
    assert not made.exists()
    failing = {"kind": "execute", "argv": ["sh", "-c", "echo no >&2; exit 5"]}
    with pytest.raises(AgentError, match="exit status: 5: no"):
        agent.change(Step.model_validate({"name": "failing", "action": failing, "inverse": {"kind": "none"}}))


def test_a_directory_that_exists_is_not_taken_for_a_new_one(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").touch()
    step = {"action": {"kind": "create", "path": str(tmp_path / "mine")}, "inverse": {"kind": "restore"}}
    with pytest.raises(AgentError, match="exists already"):
        agent.change(Step.model_validate({"name": "mine", **step}))
    agent.undo()
    assert (tmp_path / "mine" / "precious").exists()


@AS_ROOT
def test_a_file_system_is_mounted_in_a_new_directory_and_both_go_away(agent: Agent, tmp_path: Path) -> None:
    point = tmp_path / "point"
    create = {"kind": "create", "path": str(point)}
    mount = {"kind": "mount", "source": "none", "target": str(point), "file_system": "tmpfs", "options": "size=1m"}
    for action in (create, mount):
        agent.change(Step.model_validate({"name": action["kind"], "action": action, "inverse": {"kind": "restore"}}))
    (point / "file").touch()
    assert os.path.ismount(point)
    undone = agent.undo()
    assert (undone.steps, undone.failed) == (2, [])
    assert not point.exists()


@AS_ROOT
def test_a_kernel_setting_is_set_and_restored(agent: Agent) -> None:
    path = Path("/proc/sys/vm/swappiness")
    with alone_with("swappiness"):
        before = path.read_text()
        wanted = "41" if before.strip() != "41" else "42"
        agent.change(write_step(path, wanted))
        assert path.read_text().strip() == wanted
        agent.undo()
        assert path.read_text() == before
        with pytest.raises(AgentError):
            agent.change(write_step(path, "nonsense"))
        assert path.read_text() == before


def test_who_only_looks_cannot_change_anything(here: Desk, tmp_path: Path) -> None:
    (tmp_path / "setting").write_text("before")
    with open_place("local", {"state_directory": str(here.state)}, holder="a visitor", lock=False) as visitor:
        with pytest.raises(AgentError, match="holds the place's lock") as refused:
            visitor.change(write_step(tmp_path / "setting", "after"))
        assert refused.value.code == "refused"
        assert output_of(visitor, "echo", "looking") == ["looking"]


def test_parameters_that_a_native_subcommand_does_not_take_are_refused(agent: Agent) -> None:
    lines: list[str] = []
    process = agent.spawn(
        "settle",
        ["fairtrial-agent", "settle"],
        stdin='{"timeout_s": 1.0}',
        on_line=lambda _stream, line: lines.append(line),
    )
    assert process.wait(WAIT_S).code != 0
    assert "dirty_bytes" in "".join(lines)


def test_a_native_subcommand_that_cannot_do_it_says_why(agent: Agent) -> None:
    asked = FileCountersOf(path="/proc/nothing")
    with pytest.raises(PlaceError, match=r"file-counters: .*/proc/nothing"):
        run_native(agent, FILE_COUNTERS, asked, timeout_s=WAIT_S)
