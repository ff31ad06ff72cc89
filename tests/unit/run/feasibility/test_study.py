"""Which studies could run: every lack at once, from what their plans say, at places that have more or less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.facts import EMULATED, facts_of
from support.machines.places import place_in_memory
from support.seen import seen

from fairtrial.caching import CACHE_VARIABLE
from fairtrial.cli import places
from fairtrial.places.local import HELPER_VARIABLE
from fairtrial.protocol import generated as wire
from fairtrial.record.models import Plan
from fairtrial.run.feasibility.study import Lack, StudyFeasibility, feasibilities, feasibility
from fairtrial.servers import maven
from fairtrial.studies import ready
from fairtrial.study.resolved import Section
from fairtrial.wire.fake import FakeProgram

LOCAL = Section({"local": {"state_directory": None}})
MEMORY = {"/proc/meminfo": f"MemTotal: {16 << 20} kB\nMemAvailable: {8 << 20} kB"}
PROGRAMS = ("qemu-system-x86_64", "qemu-img", "mkfs.xfs", "apt-get", "dpkg-deb", "perf", "fio", "sysbench")
ALL = {name: (f"/usr/bin/{name}", "1") for name in PROGRAMS}
GROUPS = {name: {"version": 2, "directory": "/sys/fs/cgroup", "enabled": True} for name in ("io", "memory")}
FACTS: dict[str, Any] = {
    "user_id": 0,
    "free_bytes": 1 << 40,
    "processors": [0, 1],
    "kernel": "6.1",
    "controllers": GROUPS,
}

STUDY = """\
study: asked
place: {place}
system: {system}
workload: {workload}
settings: {settings}
factors: {{arm: {{a: {{}}, b: {{settings: {{environment: {{X: y}}}}}}}}}}
arm: arm
trials: {{blocks: 2}}
telemetry: {telemetry}
metrics: {{primary: {primary}}}
"""


def planned(directory: Path, **changed: str) -> Plan:
    values = {
        "place": "{local: {}}",
        "system": "{command: {}}",
        "workload": '{command: {run: "true"}}',
        "settings": "{}",
        "telemetry": "{}",
        "primary": "minor_faults",
    }
    file = directory / "study.yaml"
    file.write_text(STUDY.format(**{**values, **changed}), encoding="utf-8")
    return ready.planned(file)


def has(*missing: str) -> Any:
    """A place with every program and file but these."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        argv = spawn.argv
        if spawn.name == "du":
            return FakeProgram(code=1)  # nothing was prepared
        if spawn.name == "sql":
            return FakeProgram(stdout=['{"columns": ["1", "2"], "rows": [["3.40", "2022"]]}'])
        if spawn.name == "sha256sum":
            return FakeProgram(stdout=[f"{'0' * 64}  {argv[-1]}"])
        if argv[:1] == ["sh"] and "look" in argv:  # files that settings write
            return FakeProgram(stdout=[path for path in argv if path in missing])
        asked = argv[-1].rpartition("/")[2]
        if asked == "--version":
            return FakeProgram(stdout=["sysbench 1.0.20" if "sysbench" in argv[0] else "mariadbd  Ver 10.11.5-MariaDB"])
        return FakeProgram(code=1) if asked in missing else FakeProgram(stdout=[f"/usr/bin/{asked}"])

    return run


def asked(
    plan: Plan, *missing: str, at: Section | None = None, facts: dict[str, Any] | None = None, **also: Any
) -> StudyFeasibility:
    also = {"programs": ALL, "looked_for_programs": True, "nodes": {"/dev/kvm": "rw"}} | also
    there = FACTS | (facts or {})
    with place_in_memory(has(*missing), facts=facts_of(**there)) as (place, _fake):
        return feasibility(plan, place, seen(MEMORY, facts=there, **also), at=at or LOCAL)


def test_a_study_that_lacks_nothing_can_run(tmp_path: Path) -> None:
    found = asked(planned(tmp_path))
    assert (found.study, found.can_run, found.lacks) == ("asked", True, ())


def test_a_program_that_the_command_line_begins_with_must_be_there(tmp_path: Path) -> None:
    found = asked(planned(tmp_path, workload="{command: {run: blockbench --fast}}"), "blockbench")
    assert found.can_run is False
    assert found.lacks == (
        Lack("workload.command.run: no blockbench at this place", "install it there, or give its full path"),
    )


@pytest.mark.parametrize(
    ("version", "lack"),
    [
        ("HammerDB CLI v4.12", ""),
        ("HammerDB CLI v4.4", "expected 4.6 or later"),
        ("pgbench (PostgreSQL) 15.8", ""),
        ("pgbench (PostgreSQL) 13.4", "expected pgbench 15 or newer"),
    ],
)
def test_a_load_of_another_generation_is_a_lack(tmp_path: Path, version: str, lack: str) -> None:
    is_hammerdb = version.startswith("HammerDB")
    workload = "{hammerdb: {duration: 1min}}" if is_hammerdb else "{pgbench: {script: tpcb-like, duration: 1s}}"
    primary = "throughput_tpm" if is_hammerdb else "throughput_tps"
    plan = planned(tmp_path, system="{postgres: {}}", workload=workload, primary=primary)
    answer = has()

    def run(spawn: wire.Spawn) -> FakeProgram:
        text = " ".join(spawn.argv)
        if "hammerdbcli version" in text or text.endswith("pgbench --version"):
            return FakeProgram(stdout=[version])
        if "hammerdbcli" in text or "command -v pgbench" in text:
            return FakeProgram(stdout=["/opt/hammerdbcli" if "hammerdb" in text else "/usr/bin/pgbench"])
        ran: FakeProgram = answer(spawn)
        return ran

    programs = {**ALL, "pgbench": ("/usr/bin/pgbench", version)}
    with place_in_memory(run, facts=facts_of(**FACTS)) as (place, _fake):
        found = feasibility(plan, place, seen(MEMORY, facts=FACTS, programs=programs), at=LOCAL)
    assert [lack in each.what for each in found.lacks] == [True] * bool(lack)


def test_a_server_that_would_be_downloaded_is_neither_lacking_nor_fetched_by_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, "http://127.0.0.1:1")
    plan = planned(
        tmp_path,
        system="{mysql: {version: 5.6.14}}",
        workload="{oltp: {table_size: 100, duration: 1s}}",
        primary="throughput_tps",
    )
    assert asked(plan, "mysqld").can_run is True


@pytest.mark.parametrize(("system", "server"), [("mariadb", "mariadbd"), ("postgres", "postgres")])
def test_a_server_that_is_not_there_is_told_once_with_where_it_was_looked_for(
    tmp_path: Path, system: str, server: str
) -> None:
    plan = planned(
        tmp_path,
        system=f"{{{system}: {{}}}}",
        workload="{oltp: {table_size: 100, duration: 1s}}",
        primary="throughput_tps",
    )
    assert asked(plan).can_run is True
    found = asked(plan, server, "mysqld")  # MariaDB's program had that name
    assert len(found.lacks) == 1, "of two arms"
    assert f"no {server} at this place" in found.lacks[0].what
    assert "install" in found.lacks[0].fix


def test_a_file_that_a_setting_writes_and_the_kernel_lacks_is_named(tmp_path: Path) -> None:
    plan = planned(tmp_path, settings="{lru_gen: on}")
    found = asked(plan, "/sys/kernel/mm/lru_gen/enabled")
    assert "lru_gen.enabled" in found.lacks[0].what
    assert "debian-6.1" in found.lacks[0].fix


def test_settings_need_root_or_its_helper_and_environments_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = {"user_id": 1000}
    assert asked(planned(tmp_path), facts=user).can_run is True
    found = asked(planned(tmp_path, settings="{sysctl: {vm.swappiness: 1}}"), facts=user)
    assert found.lacks == (Lack("vm.swappiness can only be set by root", "run as root, or reach the place as root"),)
    monkeypatch.setenv(HELPER_VARIABLE, "sudo -n agent")
    assert asked(planned(tmp_path, settings="{sysctl: {vm.swappiness: 1}}"), facts=user).can_run is True
    assert asked(planned(tmp_path, settings="{swap: 1GiB}"), facts=user).can_run is False
    elsewhere = Section({"ssh": {"host": "h"}})  # whose agent has no such variable
    found = asked(planned(tmp_path, settings="{sysctl: {vm.swappiness: 1}}"), facts=user, at=elsewhere)
    assert found.can_run is False


def test_probes_need_their_programs_and_the_right_to_count(tmp_path: Path) -> None:
    plan = planned(tmp_path, telemetry="{probes: [perf_stat, {bpftrace: {program: 'BEGIN { exit(); }'}}]}")
    locked = {"/proc/sys/kernel/perf_event_paranoid": ("3",)}
    with place_in_memory(has(), facts=facts_of(**FACTS)) as (place, _fake):
        at = seen({path: text[0] for path, text in locked.items()}, programs=ALL, looked_for_programs=True)
        found = feasibility(plan, place, at, at=LOCAL)
    assert [lack.what for lack in found.lacks] == [
        "no bpftrace at this place",
        "probes with perf: perf_event_paranoid 3, at most user code",
    ]


def test_a_disk_that_is_too_small_is_told_with_both_figures(tmp_path: Path) -> None:
    plan = planned(tmp_path).model_copy(update={"disk_bytes": 5 << 30})
    (lack,) = asked(plan, facts={"free_bytes": 1 << 30}).lacks
    assert "5GiB" in lack.what
    assert "1GiB free" in lack.what


GUEST = "{vm: {kernel: debian-6.1, memory: 1GiB, pmem: 640MiB}}"


def test_a_guest_needs_qemu_and_what_makes_its_disk_and_unpacks_its_kernel(tmp_path: Path) -> None:
    plan = planned(tmp_path, place=GUEST)
    assert asked(plan).can_run is True
    found = asked(plan, programs={"mkfs.xfs": ("/usr/sbin/mkfs.xfs", "6")})
    assert [lack.what for lack in found.lacks] == [
        "no qemu-system-x86_64 at this place",
        "no qemu-img at this place",
        "no apt-get at this place",
        "no dpkg-deb at this place",
    ]
    assert found.lacks[0].fix == "`apt install qemu-system-x86` at the place, as root"


def test_a_kernel_that_is_a_file_is_not_downloaded(tmp_path: Path) -> None:
    kernel = tmp_path / "bzImage"
    kernel.touch()
    plan = planned(tmp_path, place=f"{{vm: {{kernel: {kernel}}}}}")
    programs = {name: ALL[name] for name in ("qemu-system-x86_64", "qemu-img", "mkfs.xfs")}
    assert asked(plan, programs=programs).can_run is True


def test_a_guest_that_is_larger_than_what_is_available_is_refused_with_both_figures(tmp_path: Path) -> None:
    plan = planned(tmp_path, place="{vm: {kernel: debian-6.1, memory: 9GiB}}")
    (lack,) = asked(plan).lacks
    assert lack.what == "its guest takes 9472MiB of memory, and 8192MiB are available"


def test_times_of_a_guest_need_kvm_and_counts_do_not(tmp_path: Path) -> None:
    counts, times = planned(tmp_path, place=GUEST), planned(tmp_path, place=GUEST, primary="elapsed_s")
    without: dict[str, Any] = {"nodes": {}}
    assert asked(counts, **without).can_run is True
    (lack,) = asked(times, **without).lacks
    assert "elapsed_s cannot be primary" in lack.what
    assert "counts" in lack.fix
    assert asked(times).can_run is True, "KVM that was not tried is believed"
    guest = "{vm: {kernel: debian-6.1, cpus: 1, icount: 3}}"
    (lack,) = asked(planned(tmp_path, place=guest, primary="elapsed_s")).lacks
    assert "elapsed_s cannot be primary" in lack.what, "whose instructions are counted is imitated"


def test_kvm_that_boots_no_kernel_is_none(tmp_path: Path) -> None:
    file = "/proc/sys/kernel/random/boot_id"
    plan = planned(tmp_path, place="{vm: {kernel: debian-6.1, accelerator: kvm}}")
    at = seen(
        {**MEMORY, file: "now"},
        facts=FACTS,
        programs=ALL,
        nodes={"/dev/kvm": "rw"},
        state={"kvm.json": '{"boot": "now", "kernels": {"a": false}}'},
    )
    with place_in_memory(has(), facts=facts_of(**FACTS)) as (place, _fake):
        (lack,) = feasibility(plan, place, at, at=LOCAL).lacks
    assert lack.what == "it asks for KVM, which boots no kernel here"


def test_what_a_guest_sets_is_its_own_kernels_affair(tmp_path: Path) -> None:
    plan = planned(tmp_path, place=GUEST, settings="{lru_gen: on}")
    assert asked(plan, "/sys/kernel/mm/lru_gen/enabled").can_run is True
    inside = {"guest": EMULATED}
    (guest,) = places.of_plan(plan)
    found = asked(plan, "/sys/kernel/mm/lru_gen/enabled", at=guest, facts=inside, programs={})
    assert ["lru_gen" in lack.what for lack in found.lacks] == [True], "and a guest needs no QEMU in it"


def test_a_study_of_another_place_says_how_to_look_there(tmp_path: Path) -> None:
    found = asked(planned(tmp_path, place="{ssh: {host: bench-1, user: me, port: 2222}}"))
    assert found.can_run is None
    assert found.lacks == (Lack("runs at ssh bench-1", "`fairtrial doctor ssh://me@bench-1:2222`"),)


def test_a_workload_of_another_place_is_asked_about_there(tmp_path: Path) -> None:
    client = "{oltp: {table_size: 100, duration: 1s}, place: {ssh: {host: client-1}}}"
    plan = planned(tmp_path, system="{mariadb: {}}", workload=client, primary="throughput_tps")
    found = asked(plan)
    assert found.can_run is None
    assert found.lacks == (Lack("runs at ssh client-1", "`fairtrial doctor ssh://client-1`"),)
    embedded = asked(planned(tmp_path, system="{sqlite: {}}", workload=client, primary="throughput_tps"))
    assert "no server that another place could reach" in embedded.lacks[0].what


def test_a_local_study_is_taken_to_run_at_whatever_was_looked_at(tmp_path: Path) -> None:
    at = Section({"ssh": {"host": "bench-1"}})
    assert asked(planned(tmp_path), at=at).can_run is True
    assert asked(planned(tmp_path, place=GUEST), at=at).can_run is None, "its guest boots on the machine that asks"


@pytest.mark.parametrize("file", ready.bundled(), ids=lambda file: file.stem)
def test_every_study_that_is_shipped_can_be_asked_about(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))  # a server that is here has its own hash
    plan = ready.planned(file)
    assert asked(plan).can_run is True
    nowhere = asked(plan, "mariadbd", "true", facts={"free_bytes": 0, "user_id": 1}, programs={})
    assert nowhere.can_run is False
    assert all(lack.what and lack.fix for lack in nowhere.lacks)
    assert nowhere.as_json()["lacks"][0]["fix"]


SERVED = {"workload": "{oltp: {duration: 1s}}", "primary": "throughput_tps"}


@pytest.mark.parametrize(
    ("asked_for", "written"),
    [
        ("mariadb.options.innodb_buffer_pool_size=20G", "20GiB"),
        ("mysql.options.innodb_buffer_pool_size=17180917760", "16385MiB"),
        ("postgres.options.shared_buffers=17GB", "17GiB"),
    ],
)
def test_a_cache_that_is_larger_than_memory_cannot_be(tmp_path: Path, asked_for: str, written: str) -> None:
    path, _, value = asked_for.partition("=")
    kind, _, option = path.split(".")
    plan = planned(tmp_path, system=f"{{{kind}: {{options: {{{option}: {value}}}}}}}", **SERVED)
    found = [lack for lack in asked(plan).lacks if "of memory" in lack.what]
    assert len(found) == 1, "the same in both arms"
    assert f" is {written}, and this place has 16384MiB of memory" in found[0].what
    assert f"--set system.{path}=" in found[0].fix


def test_a_cache_that_fits_or_is_a_guests_is_nothing_to_say(tmp_path: Path) -> None:
    for system, place in (("16G", "{local: {}}"), ("20G", GUEST)):
        options = f"{{mariadb: {{options: {{innodb_buffer_pool_size: {system}}}}}}}"
        asked_for = {**SERVED, "primary": "log_written_bytes"}
        found = asked(planned(tmp_path, system=options, place=place, **asked_for)).lacks
        assert not [lack for lack in found if "innodb_buffer_pool_size" in lack.what]


def test_a_server_that_several_studies_name_is_looked_for_once(tmp_path: Path) -> None:
    plans = [
        planned(tmp_path, system=f"{{mariadb: {{options: {{innodb_io_capacity: {n}}}}}}}", **SERVED) for n in (100, 200)
    ]
    at = seen(MEMORY, facts=FACTS, programs=ALL)
    answer = has("mariadbd", "mysqld")
    looked: list[tuple[str, ...]] = []

    def noted(spawn: wire.Spawn) -> FakeProgram:
        looked.append(tuple(spawn.argv))
        ran: FakeProgram = answer(spawn)
        return ran

    with place_in_memory(noted, facts=facts_of(**FACTS)) as (place, _fake):
        found = feasibilities(plans, place, at, at=LOCAL)
    assert [each.can_run for each in found] == [False, False]
    assert all("no mariadbd" in each.lacks[0].what for each in found)
    servers = [argv for argv in looked if any("mariadbd" in word for word in argv)]
    assert servers
    assert len(servers) == len(set(servers)), "no look is repeated"
