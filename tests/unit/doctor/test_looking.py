"""The look itself: the real script, by a real agent, over a tree of files and over this machine; and what it prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines.places import FACTS, place_here, place_in_memory
from support.seen import CPU, process, stat

from fairtrial.doctor import examine, judged, look, looking
from fairtrial.doctor.looking import moved, parsed, spent
from fairtrial.doctor.programs import PROGRAMS
from fairtrial.doctor.storage import disk_space
from fairtrial.wire import Limits, Process
from fairtrial.wire.fake import FakeProgram
from fairtrial.wire.open_place import OpenPlace

QUICK_S = 0.05


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    with place_here(tmp_path) as found:
        yield found


def tree(root: Path, files: dict[str, str]) -> str:
    """Files below a root of their own."""
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    return str(root)


def test_a_tree_of_ones_own_is_read_as_it_is(place: OpenPlace, tmp_path: Path) -> None:
    root = tree(
        tmp_path / "root",
        {
            "/proc/stat": stat(user=5, idle=95),
            "/proc/12/stat": process("a server", 8, number=12),
            "/proc/meminfo": "MemTotal:       16384 kB\nMemAvailable:    8192 kB",
            "/proc/self/limits": "Max open files            1024                 4096                 files",
            f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
            f"{CPU}/cpu11/cpufreq/scaling_governor": "performance",
            "/dev/kvm": "",
        },
    )
    seen = look(place, root=root, sample_s=QUICK_S)
    assert seen.kibibytes("MemAvailable") == 8192
    assert seen.each(f"{CPU}/cpu*/cpufreq/scaling_governor") == {
        f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
        f"{CPU}/cpu11/cpufreq/scaling_governor": "performance",
    }
    assert seen.first == seen.second
    assert set(seen.first) == {"/proc/stat", "/proc/12/stat"}
    assert seen.nodes["/dev/kvm"] == "rw"
    assert seen.text("/proc/loadavg") is None
    grades = {finding.name: finding.grade for finding in judged(seen)}
    assert grades["frequency_scaling"] == "caution"
    assert grades["memory_available"] == "fine"
    assert grades["psi"] == "caution"


def test_this_machine_is_seen_whole_and_nothing_stays_behind(place: OpenPlace, tmp_path: Path) -> None:
    before = sorted((tmp_path / "state").rglob("*"))
    seen = look(place, programs=PROGRAMS.values(), sample_s=QUICK_S)
    assert sorted((tmp_path / "state").rglob("*")) == before
    assert (seen.kibibytes("MemTotal") or 0) > 0
    assert seen.state["reflink"] in {"yes", "no"}
    assert int(seen.state["size_kib"]) >= int(seen.state["available_kib"]) > 0
    assert moved(seen, "/proc/vmstat", "pgfault") is not None
    assert set(seen.programs) <= set(PROGRAMS)
    path, version = seen.programs.get("apt-get", ("/", "0"))
    assert path.startswith("/")
    assert any(character.isdigit() for character in version)


def test_what_a_run_stores_is_a_seconds_sample_of_every_group_but_programs(place: OpenPlace) -> None:
    found = examine(place)
    names = [finding.name for finding in found]
    assert {"frequency_scaling", "steal", "memory_pressure", "file_system", "perf", "open_files"} <= set(names)
    assert not [name for name in names if name.startswith("program")]
    assert all(finding.fix for finding in found if finding.grade != "fine")


def test_a_second_of_this_machine_has_about_a_hundred_ticks_of_each_processor(place: OpenPlace) -> None:
    sample = spent(look(place))
    assert sample is not None
    assert sample.ticks >= 50  # of one processor at least, whatever the machine is doing
    assert 0 <= sample.busy <= 1
    assert 0 <= sample.steal <= 1


def test_a_place_that_says_nothing_is_unknown_and_no_error() -> None:
    with place_in_memory(lambda _spawn: FakeProgram(code=1)) as (place, _fake):
        found = examine(place)
    assert {f.grade for f in found if f.name in {"steal", "other_load", "swap", "perf", "numa"}} == {"unknown"}


def test_a_place_whose_disk_does_not_answer_is_known_by_what_it_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "LOOK_S", 0.01)
    monkeypatch.setattr(looking, "END_S", 0.01)
    hangs = FakeProgram(code=None, stdout=["@once", "/proc/loadavg 1.0"])
    with place_in_memory(lambda _spawn: hangs, limits=Limits(kill_s=0.01)) as (place, _fake):
        monkeypatch.setattr(Process, "signal", lambda *_args, **_options: None)  # as if it hung in the kernel
        assert look(place).first == {}


def test_what_the_script_prints_is_told_apart_by_its_sections() -> None:
    said = [
        ("stdout", "@once"),
        ("stdout", "proc/loadavg:0.10 0.20 0.30 1/99 7"),
        ("stdout", "proc/meminfo:MemTotal:  1024 kB"),
        ("stderr", "grep: sys/kernel/security/lockdown: Permission denied"),
        ("stderr", "grep: proc/pressure/memory: No such file or directory"),
        ("stdout", "@first"),
        ("stdout", "proc/stat:cpu  1 2 3"),
        ("stdout", "@second"),
        ("stdout", "proc/stat:cpu  4 5 6"),
        ("stdout", "@node dev/kvm "),
        ("stdout", "@node sys/fs/bpf r"),
        ("stdout", "@state reflink no"),
        ("stdout", "@state kvm.json {}"),
        ("stdout", "@state ceiling-0123-6.1.json {1}"),
        ("stdout", "@state df Filesystem 1024-blocks Used Available Capacity Mounted on"),
        ("stdout", "@state df a name of blanks 100 30 70 30% /"),
        ("stdout", "@program fio /usr/bin/fio fio-3.33"),
        ("stdout", "@program perf /usr/bin/perf "),
    ]
    seen = parsed(said, facts=FACTS, programs=True)
    assert seen.text("/proc/loadavg") == "0.10 0.20 0.30 1/99 7"
    assert seen.kibibytes("MemTotal") == 1024
    assert seen.refused == {"/sys/kernel/security/lockdown"}
    assert (seen.first["/proc/stat"], seen.second["/proc/stat"]) == (["cpu  1 2 3"], ["cpu  4 5 6"])
    assert seen.nodes == {"/dev/kvm": "", "/sys/fs/bpf": "r"}
    assert seen.state == {
        "reflink": "no",
        "kvm.json": "{}",
        "ceiling": "{1}",
        "size_kib": "100",
        "available_kib": "70",
    }
    assert seen.programs == {"fio": ("/usr/bin/fio", "fio-3.33"), "perf": ("/usr/bin/perf", "")}


@pytest.mark.parametrize("mounted", ["/", "/media/me/My Passport", "/a 1 2 3 4% /b"])
def test_a_device_and_a_mount_point_may_have_blanks_in_their_names(mounted: str) -> None:
    seen = parsed(
        [("stdout", f"@state df my device 4194304 3145728 1048576 75% {mounted}")], facts=FACTS, programs=False
    )
    assert disk_space(seen).value == "1 GiB free of 4 GiB"


def test_a_file_that_is_no_number_is_none() -> None:
    seen = parsed([("stdout", "@once"), ("stdout", "proc/sys/fs/aio-nr:many")], facts=FACTS, programs=False)
    assert seen.number("/proc/sys/fs/aio-nr") is None
    assert seen.number("/proc/sys/fs/aio-max-nr") is None
