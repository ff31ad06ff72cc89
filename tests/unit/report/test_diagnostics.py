"""Diagnostic trials in reports: shown arm beside arm, in no estimate whatever they measured, and recomputed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from rich.console import Console

from fairtrial import report, verify
from fairtrial.metrics import frames
from fairtrial.metrics.telemetry import probes
from fairtrial.metrics.telemetry.probes import DIRECTORY, ProbeFinding, ProbeRun, Symbol
from fairtrial.record import Record, read, resume
from fairtrial.record.files import sha256
from fairtrial.record.models import Plan, TrialRecord, TrialStarted
from fairtrial.report import diagnostics, text
from fairtrial.report.analysing import analysed
from fairtrial.report.diagnostics import DiagnosticTrial
from fairtrial.report.scene import Scene
from fairtrial.report.text import console
from fairtrial.study.probes import Probe

PROBES: list[Any] = [
    "perf_stat",
    "perf_record",
    {"bpftrace": {"program": "x", "script": "locks.bt"}},
    {"file": "/proc/vmstat"},
    {"command": "vmstat 1"},
]
SECOND = 1_000_000_000
ABSURD = 1e9
Make = Callable[..., Record]


def write_probes(directory: Path, *, busy: float) -> None:
    """What five probes leave of two seconds; `busy` scales counts."""
    kinds = ("perf_stat", "perf_record", "bpftrace", "file", "command")
    labels = [Probe.model_validate(each).label for each in PROBES]
    runs = [
        ProbeRun(number=number, kind=kind, label=label, start_ns=SECOND, end_ns=3 * SECOND)
        for number, (kind, label) in enumerate(zip(kinds, labels, strict=True), start=1)
    ]
    below = directory / DIRECTORY
    below.mkdir()
    files = {
        "probes.json": probes.write_runs(runs).decode(),
        "1-perf_stat.tsv": f"{2000 * busy}\tmsec\ttask-clock\t1\t100\n{400 * busy}\t\tpage-faults\t1\t100\n",
        "2-perf_record.tsv": f"{round(60 * busy)}\tserver\tkernel\t[k] spin\n40\tserver\tlibc\t[.] <memcpy>\n",
        "3-bpftrace.txt": "Attaching 1 probe...\n" + "".join(f"@lock[{n}]: {n}\n" for n in range(40)),
        "4-file.before.txt": "pgfault 1\nsame 1\n",
        "4-file.after.txt": f"pgfault {round(busy * 10)}\nsame 1\n",
        "5-command.txt": "r b\n1 0\n",
    }
    for name, content in files.items():
        (below / name).write_text(content, encoding="utf-8")


def diagnosed(
    directory: Path,
    *,
    scale: float = 1.0,
    invalid: tuple[str, ...] = (),
    blocks: int = 1,
    hosts: Mapping[str, str] = MappingProxyType({}),
) -> Record:
    """The record in `directory` with a diagnostic trial of every arm and cell added after its end."""
    before = read(directory)
    like = {(trial.trial.cell, trial.trial.arm): trial for trial in before.trials if trial.valid}
    planned = [
        trial.trial.model_copy(
            update={
                "id": f"{cell}.d{block:02d}.{arm}",
                "diagnostic": True,
                "block": block,
                "round": block,
                "position": 99,
            }
        )
        for block in range(1, blocks + 1)
        for (cell, arm), trial in like.items()
    ]
    changes = {"probes": [Probe.model_validate(each) for each in PROBES], "diagnostics": planned}
    plan = before.plan.model_copy(update=changes)
    known = sha256(directory / "plan.json")
    (directory / "plan.json").write_text(plan.model_dump_json(), encoding="utf-8")
    begun = (directory / "journal.jsonl").read_text(encoding="utf-8")  # as if it had begun with that plan
    begun = begun.replace(known, sha256(directory / "plan.json"))
    (directory / "journal.jsonl").write_text(begun, encoding="utf-8")
    writer = resume(directory)
    for trial in planned:
        of = like[trial.cell, trial.arm]
        writer.append(TrialStarted(trial=trial))
        raw = writer.begin(trial.id)
        shutil.copytree(before.trial_directory(of.trial.id), raw, dirs_exist_ok=True)
        write_probes(raw, busy=1.0 if trial.arm == "delete" else 1.5)
        lost = trial.id in invalid
        writer.commit(
            of.model_copy(
                update={
                    "trial": trial,
                    "host": hosts.get(trial.arm, ""),
                    "scalars": {name: value * scale for name, value in of.scalars.items()},
                    "valid": not lost,
                    "invalid_reason": "the probe died" if lost else "",
                }
            )
        )
    writer.close()
    return read(directory)


@pytest.fixture
def make(record: Record, tmp_path: Path) -> Make:
    def copy(**options: Any) -> Record:
        directory = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(record.directory, directory)
        return diagnosed(directory, **options)

    return copy


@pytest.fixture(scope="module")
def usual(record: Record, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """One that is only read."""
    directory = tmp_path_factory.mktemp("usual") / "run"
    shutil.copytree(record.directory, directory)
    return diagnosed(directory)


@pytest.fixture(scope="module")
def lines(usual: Record) -> list[str]:
    """Its text."""
    return text.render(Scene(usual, analysed(usual))).splitlines()


def test_the_reader_keeps_them_apart(record: Record, usual: Record) -> None:
    assert [trial.trial.id for trial in usual.trials] == [trial.trial.id for trial in record.trials]
    assert len(usual.diagnostics) == 4
    assert usual.committed == (*usual.trials, *usual.diagnostics)


def test_an_absurd_value_of_theirs_changes_nothing_but_their_count(record: Record, make: Make) -> None:
    for contrast in ("journal", "users"):
        plain = analysed(record, contrast=contrast).model_dump()
        absurd = analysed(make(scale=ABSURD), contrast=contrast).model_dump()
        assert absurd["counts"].pop("diagnostic") == 4
        assert plain["counts"].pop("diagnostic") == 0
        assert absurd == plain


def test_broken_ones_void_nothing(record: Record, make: Make) -> None:
    found = make(invalid=("low.d01.wal", "high.d01.delete"))
    plain, broken = analysed(record), analysed(found)
    assert broken.counts.model_dump(exclude={"diagnostic"}) == plain.counts.model_dump(exclude={"diagnostic"})
    assert broken.cells == plain.cells


def test_arms_on_different_hosts_have_no_ratios(make: Make) -> None:
    """Each diagnostic trial of a farm is a block of its own."""
    for hosts, apart in (({}, False), ({"delete": "x", "wal": "x"}, False), ({"delete": "x", "wal": "y"}, True)):
        found = make(hosts=hosts)
        trials = diagnostics.of_record(found)
        said = " ".join(diagnostics.summary(found, trials))
        assert (diagnostics.APART in said) == ("low.d01.wal on y" in said) == apart
        rates = next(iter(diagnostics.sections(found, trials)))
        assert ("wal / delete" not in rates.header) == apart
        assert {len(row) for row in rates.rows} == {len(rates.header)}


def test_tables_of_raw_data_and_frames_leave_them_out(record: Record, make: Make) -> None:
    found = make(scale=ABSURD)
    one, other = (report.plain(Scene(each, analysed(each))) for each in (found, record))
    assert one["raw_data.csv"] == other["raw_data.csv"]
    assert one["raw_data.r"] == other["raw_data.r"]
    assert frames.trials(found).equals(frames.trials(record))


def test_a_run_that_has_come_to_them_has_measured_all_that_estimates_use(usual: Record) -> None:
    cut = Record(
        directory=usual.directory,
        plan=usual.plan,
        journal=tuple(line for line in usual.journal if line.entry.event != "run_finished"),
    )
    assert not cut.finished
    assert cut.measured
    assert analysed(cut).finished
    none = Record(
        directory=usual.directory,
        plan=usual.plan,
        journal=tuple(
            line for line in cut.journal if not (isinstance(line.entry, TrialStarted) and line.entry.trial.diagnostic)
        ),
    )
    assert not none.measured
    assert not analysed(none).finished


def sections(found: Record) -> dict[str, diagnostics.ProbeSection]:
    return {each.title: each for each in diagnostics.sections(found, diagnostics.of_record(found))}


def test_counts_stand_arm_beside_arm_per_second(usual: Record) -> None:
    section = sections(usual)["low: perf stat"]
    assert section.header == ("event", "delete, per s", "wal, per s", "wal / delete")
    assert section.rows == (("task-clock", "1000", "1500", "1.500"), ("page-faults", "200", "300", "1.500"))


def test_functions_stand_arm_beside_arm_as_shares_the_largest_first(usual: Record) -> None:
    section = sections(usual)["high: perf record"]
    assert section.header == ("function", "from", "delete", "wal")
    assert section.rows == (
        ("[k] spin", "kernel", "60.0 %", "69.2 %"),  # 90 of 130 samples
        ("[.] <memcpy>", "libc", "40.0 %", "30.8 %"),
    )


def test_outputs_name_their_trial_and_a_file_shows_what_changed(usual: Record) -> None:
    found = sections(usual)
    script, file = found["low: bpftrace locks.bt"], found["low: file /proc/vmstat"]
    assert sorted(each.caption for each in script.outputs) == [
        "delete (low.d01.delete), over 2.0 s",
        "wal (low.d01.wal), over 2.0 s",
    ]
    assert script.outputs[0].lines[0] == "Attaching 1 probe..."
    by_caption = {each.caption: each.lines for each in file.outputs}
    assert by_caption["wal (low.d01.wal), lines that changed"] == ("-pgfault 1", "+pgfault 15")


def test_every_cell_and_probe_has_its_section_in_the_plans_order(usual: Record) -> None:
    labels = [Probe.model_validate(each).label for each in PROBES]
    assert list(sections(usual)) == [f"{cell}: {label}" for cell in ("low", "high") for label in labels]


def trial(arm: str, block: int = 1, **finding: Any) -> DiagnosticTrial:
    whole = ProbeFinding.model_validate({"number": 1, "kind": "perf_stat", "label": "perf stat", **finding})
    return DiagnosticTrial(trial=f"low.d{block:02d}.{arm}", cell="low", arm=arm, valid=True, probes=(whole,))


def rows(record: Record, *trials: DiagnosticTrial) -> tuple[tuple[str, ...], ...]:
    (section,) = diagnostics.sections(record, trials)
    return section.rows


def test_several_trials_of_an_arm_count_by_their_seconds(usual: Record) -> None:
    """100 in 1 s and 200 in 3 s are 75 per second; a mean of rates would be 83."""
    found = rows(
        usual,
        trial("delete", 1, seconds=1.0, counters={"x": 100.0}),
        trial("delete", 2, seconds=3.0, counters={"x": 200.0}),
        trial("wal", 1, seconds=2.0, counters={"x": 30_000.0}),
    )
    assert found == (("x", "75", "15,000", "200"),)


@pytest.mark.parametrize(("rate", "said"), [(9999.4, "9999"), (9999.6, "10,000"), (12345.6, "12,346")])
def test_a_rate_has_no_power_of_ten(rate: float, said: str) -> None:
    assert diagnostics._rated(rate) == said


def test_what_no_trial_of_an_arm_could_count_is_absent_and_has_no_ratio(usual: Record) -> None:
    found = rows(
        usual,
        trial("delete", seconds=1.0, counters={"x": None, "y": 0.0}),
        trial("wal", seconds=1.0, counters={"x": 5.0, "y": 5.0, "z": 1.0}),
    )
    assert found == (("x", "–", "5", "–"), ("y", "0", "5", "–"), ("z", "–", "1", "–"))


def test_shares_of_several_trials_weigh_by_samples_and_a_missing_function_is_absent(usual: Record) -> None:
    def sampled(arm: str, block: int, samples: int, **shares: float) -> DiagnosticTrial:
        symbols = [Symbol(symbol=name, origin="o", share=share) for name, share in shares.items()]
        return trial(arm, block, kind="perf_record", samples=samples, symbols=symbols)

    found = rows(
        usual, sampled("delete", 1, 100, f=0.5), sampled("delete", 2, 300, f=0.1, g=0.2), sampled("wal", 1, 50, h=0.9)
    )
    assert found == (("h", "o", "–", "90.0 %"), ("f", "o", "20.0 %", "–"), ("g", "o", "15.0 %", "–"))


def test_long_names_are_cut_for_the_page_not_in_the_data(usual: Record) -> None:
    name = "x" * 100
    symbols = [Symbol(symbol=name, origin=name, share=1.0)]
    ((shown, origin, *_),) = rows(usual, trial("wal", kind="perf_record", samples=1, symbols=symbols))
    assert (len(shown), shown[-1]) == (diagnostics.NAME_SHOWN, "…")
    assert (len(origin), origin[-1]) == (diagnostics.ORIGIN_SHOWN, "…")


def test_the_text_says_how_many_with_what_and_that_nothing_rests_on_them(usual: Record) -> None:
    lines = text.render(Scene(usual, analysed(usual))).splitlines()
    start = lines.index("Diagnostic trials")
    words = " ".join(lines[start : start + 8])
    assert "4 of 4 diagnostic trials ran, after all others, with perf stat, perf record, bpftrace locks.bt" in words
    assert "No estimate, count or verdict" in words
    assert any(line.split() == ["task-clock", "1000", "1500", "1.500"] for line in lines)
    assert "  … and 11 more lines in the trial's directory" in lines, "41 lines, of which 30 fit"
    assert any(line.split() == ["diagnostic,", "not", "included", "above", "4"] for line in lines)


def test_an_invalid_one_says_why_and_shows_nothing(make: Make) -> None:
    found = make(invalid=("low.d01.wal",))
    lines = text.render(Scene(found, analysed(found))).splitlines()
    assert "low.d01.wal has no result: the probe died" in lines
    assert any(line.split() == ["task-clock", "1000", "–", "–"] for line in lines)
    assert not any("low.d01.wal)" in line for line in lines)


def test_a_study_without_probes_and_another_contrast_say_nothing_of_them(record: Record, usual: Record) -> None:
    assert "iagnostic" not in text.render(Scene(record, analysed(record)))
    assert "Diagnostic trials" not in text.render(Scene(usual, analysed(usual, contrast="users"))).splitlines()


def printed(found: Record) -> str:
    shown = Console(width=120, color_system=None)
    with shown.capture() as capture:
        shown.print(console.render(analysed(found)))
    return capture.get()


def test_the_terminal_counts_them_beside_the_others(record: Record, usual: Record) -> None:
    assert "24 of 26 finished trials used, 4 diagnostic trials in addition" in " ".join(printed(usual).split())
    assert "diagnostic" not in printed(record)


@pytest.fixture(scope="module")
def written_once(usual: Record) -> Record:
    """With its report: drawing figures takes longer than all else here."""
    report.write(usual, analysed(usual), usual.directory / "report")
    return read(usual.directory)


@pytest.fixture
def written(written_once: Record, tmp_path: Path) -> Record:
    """One to damage; of the same name, which its text has."""
    directory = tmp_path / written_once.directory.name
    shutil.copytree(written_once.directory, directory)
    return read(directory)


def test_the_page_shows_tables_and_outputs_and_escapes_them(written_once: Record) -> None:
    page = (written_once.directory / "report" / "report.html").read_text(encoding="utf-8")
    section = page.partition('<section id="diagnostics">')[2].partition("</section>")[0]
    assert "<summary>low: perf stat</summary>" in section
    assert "<td>task-clock</td>" in section
    assert "[.] &lt;memcpy&gt;" in section
    assert "<memcpy>" not in section
    assert "@lock[39]: 39" in section
    assert "-pgfault 1\n+pgfault 15" in section


def stored(written: Record) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((written.directory / "report" / "report.json").read_bytes())
    return found


def test_report_json_holds_every_probe_of_every_trial(written: Record) -> None:
    found = stored(written)
    assert [each["trial"] for each in found["diagnostics"]] == [each.trial.id for each in written.diagnostics]
    assert {len(each["probes"]) for each in found["diagnostics"]} == {5}
    assert found["analysis"]["counts"]["diagnostic"] == 4


def test_verify_recomputes_them(written: Record) -> None:
    assert verify.recompute(written) == []


def test_verify_names_a_figure_that_was_changed_in_the_report(written: Record) -> None:
    content = stored(written)
    content["diagnostics"][0]["probes"][0]["counters"]["task-clock"] *= 1.01
    (written.directory / "report" / "report.json").write_text(json.dumps(content), encoding="utf-8")
    (found,) = verify.recompute(read(written.directory))
    assert found.startswith("report/report.json: diagnostics[0].probes[0].counters.task-clock is ")


def test_verify_names_a_raw_file_that_was_changed_or_is_gone(written: Record) -> None:
    raw = written.trial_directory("low.d01.wal") / DIRECTORY / "1-perf_stat.tsv"
    raw.write_text(raw.read_text().replace("3000", "3001"))
    found = verify.recompute(read(written.directory))
    assert any("counters.task-clock is 3000.0 but recomputed 3001.0" in each for each in found)
    raw.unlink()
    (gone,) = verify.recompute(read(written.directory))
    assert gone.startswith("report/report.json: diagnostics cannot be recomputed: ")
    assert raw.name in gone


def test_verify_recomputes_their_scalars_too(written: Record) -> None:
    path = written.trial_directory("low.d01.wal") / "trial.json"
    content = json.loads(path.read_bytes())
    content["scalars"]["throughput_tpm"] *= 2
    path.write_text(json.dumps(content), encoding="utf-8")
    (found,) = verify.recompute(read(written.directory))
    assert found.startswith("trials/low.d01.wal/trial.json: throughput_tpm is ")


def test_a_plan_and_a_trial_of_before_there_were_probes_are_read_as_having_none(record: Record) -> None:
    plan = json.loads(record.plan.model_dump_json(exclude={"probes", "diagnostics", "diagnostic_duration_s"}))
    for trial_ in plan["trials"]:
        del trial_["diagnostic"]
    assert Plan.model_validate(plan) == record.plan
    old = json.loads(record.trials[0].model_dump_json())
    del old["trial"]["diagnostic"]
    assert TrialRecord.model_validate(old) == record.trials[0]
