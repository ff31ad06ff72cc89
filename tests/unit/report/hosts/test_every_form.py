"""Comparisons over several hosts in every form of a report: text, page, figure, table, R, and checked by `verify`."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import altair as alt
import pytest
from rich.console import Console
from support.inference.analysis_cases import Case
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial import verify
from fairtrial.analyse import analyse
from fairtrial.analyse.hosts.models import HostEffect, OverHosts
from fairtrial.analyse.models import Analysis
from fairtrial.record import Record, create, read, resume
from fairtrial.record.events import RunFinished
from fairtrial.record.models import BlockVoided
from fairtrial.report import document, hosts, numbers, page, r_script, raw, tables, text
from fairtrial.report.analysing import analysed
from fairtrial.report.figures import hosts as host_figures
from fairtrial.report.figures.verdicts import CellFigures
from fairtrial.report.scene import Scene
from fairtrial.report.text import console, summary
from fairtrial.workloads import workload_of
from fairtrial.workloads.command import USAGE
from fairtrial.workloads.command.runs import OUTPUT

FIVE, BLOCKS = 5, 12


@pytest.fixture(scope="module")
def farmed(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A command's run on five hosts: arm `b` takes 12 to 16 % longer, host by host."""
    base = tiny_plan()
    definitions = dict(workload_of(RESOLVED.workload).metrics())
    metrics = base.metrics.model_copy(update={"definitions": definitions, "guardrails": ["user_s"]})
    trials = [planned(block, arm) for block in range(1, BLOCKS + 1) for arm in "ab"]
    design = base.design.model_copy(update={"blocks": BLOCKS})
    plan = base.model_copy(update={"metrics": metrics, "trials": trials, "design": design})
    with closing(create(tmp_path_factory.mktemp("farm") / "run", plan=plan, sources={"study.yaml": ""})) as writer:
        for trial in trials:
            host = trial.block % FIVE
            slower = 1.12 + host / 100 if trial.arm == "b" else 1.0
            elapsed_s = (1 + host) * slower * (1 + trial.position * 37 % 11 / 1000)
            scalars = dict.fromkeys(definitions, elapsed_s)
            raw_files = writer.begin(trial.id)
            (raw_files / USAGE).write_text(json.dumps(scalars), encoding="utf-8")
            (raw_files / OUTPUT).parent.mkdir(exist_ok=True)
            (raw_files / OUTPUT).touch()
            made = trial_record(trial).model_copy(update={"scalars": scalars, "host": f"node-{host + 1}"})
            writer.commit(made)
        writer.append(RunFinished())
        return writer.record()


@pytest.fixture(scope="module")
def scene(farmed: Record) -> Scene:
    return Scene(record=farmed, analysis=analysed(farmed))


def of_hosts(hosts_: int) -> Analysis:
    case = Case({"kernel": ("a", "b"), "load": ("low", "high")}, blocks=BLOCKS)
    gains = {"low": lambda block: 90 + 3 * block, "high": lambda block: block % 3 - 1}

    def value(levels: Mapping[str, str], block: int) -> float:
        return 1000 + 7 * (block * 5 % 11) + (gains[levels["load"]](block) if levels["kernel"] == "b" else 0)

    trials = [
        each.model_copy(update={"host": f"node-{each.trial.block % hosts_}" if hosts_ else ""})
        for each in case.trials(tpm=value)
    ]
    return analyse(case.plan(), trials)


@pytest.mark.parametrize(("count", "said"), [(0, ""), (1, "1 host · "), (6, "6 hosts · ")])
def test_every_comparison_says_over_how_many_hosts(count: int, said: str) -> None:
    analysis = of_hosts(count)
    (table,) = tables.metric_tables(analysis)
    assert tables.procedure(analysis, table).startswith(f"paired over blocks · {said}family of 2, Holm")


def test_the_summary_tells_these_hosts_from_hosts_like_these() -> None:
    def said(count: int) -> tuple[str, ...]:
        analysis = of_hosts(count)
        found = hosts.sentences(analysis, summary.judged_tables(analysis))
        assert set(found) <= set(summary.sentences(analysis))
        return found

    here = "Verdicts hold for the {} hosts that the blocks ran on."
    assert said(6) == (f"{here.format(6)} For hosts like these: better at low; equivalent at high.",)
    assert said(3) == (f"{here.format(3)} They say nothing of other hosts: that takes at least 5.",)
    assert said(0) == ()


def test_a_row_has_the_figures_of_the_random_effects(scene: Scene) -> None:
    primary, guardrail = scene.tables
    (row,) = primary.rows
    over = row.comparison.over_hosts
    assert over is not None
    assert over.ratio is not None
    columns = hosts.columns(primary, row, confidence=0.95)
    assert columns["hosts"] == "5"
    assert float(columns["adjusted p"].removeprefix("< ")) < 0.05
    assert columns["ratio"] == f"{over.ratio:.3f}"
    assert columns["tau"].endswith(" %)")
    assert columns["verdict"] == "slower"
    assert hosts.columns(guardrail, guardrail.rows[0], confidence=0.95)["verdict"] == "none: a guardrail"


def test_a_ratio_has_as_many_decimals_as_its_interval(scene: Scene) -> None:
    table = scene.tables[0]
    over = table.rows[0].comparison.over_hosts
    assert over is not None
    narrow = {"ratio": 1.00009, "low": 1.00008, "high": 1.0001}
    each = [host.model_copy(update=narrow) for host in over.hosts]
    comparison = table.rows[0].comparison.model_copy(
        update={"over_hosts": over.model_copy(update={**narrow, "hosts": tuple(each)})}
    )
    row = replace(table.rows[0], comparison=comparison)
    columns = hosts.columns(table, row, confidence=0.95)
    assert (columns["ratio"], columns["95 % interval"]) == ("1.00009", "1.00008 – 1.00010")
    assert hosts.by_host([row], several=False)[0][3:] == ["1.00009", "1.00008 – 1.00010"]


def test_blocks_of_a_host_that_agree_leave_no_noise_and_the_note_says_so() -> None:
    case = Case({"kernel": ("a", "b")}, blocks=2 * FIVE)
    trials = [
        each.model_copy(update={"host": f"node-{each.trial.block % FIVE}"})
        for each in case.trials(
            tpm=lambda levels, block: 64.0 * (1.5 + block % FIVE / 32 if levels["kernel"] == "b" else 1)
        )
    ]
    (table,) = tables.metric_tables(analyse(case.plan(), trials))
    (row,) = table.rows
    columns = hosts.columns(table, row, confidence=0.95)
    assert {columns[name] for name in ("further host", "tau", "I²", "equal p")} == {numbers.ABSENT}
    over = row.comparison.over_hosts
    assert over is not None
    assert {each.blocks for each in over.hosts} == {2}
    assert "Where no host has two blocks, or blocks of a host do not vary, no noise is known" in hosts.NOTE


def test_text_and_terminal_say_it(scene: Scene) -> None:
    said = text.render(scene)
    assert "Table 1f. Hosts like these." in said
    assert "Table 1g. Each host by itself" in said
    assert "node-3" in said
    printed = Console(width=200, record=True, file=io.StringIO())
    printed.print(console.render(scene.analysis))
    assert "Verdicts hold for the 5 hosts" in printed.export_text()


def test_the_page_draws_each_comparison_by_host(scene: Scene) -> None:
    (cell,) = scene.analysis.cells
    drawn = [figure for table in scene.tables for figure in host_figures.by_host(scene, cell, table)]
    assert [figure.name for figure in drawn] == ["hosts-elapsed_s", "hosts-user_s"]
    for figure in drawn:
        alt.LayerChart.from_dict(figure.spec, validate=True)
    rows = max(drawn[0].spec["datasets"].values(), key=len)
    names = [*(f"node-{number}" for number in range(1, 6)), host_figures.LIKE_THESE, host_figures.FURTHER]
    assert [row["host"] for row in rows] == names
    over = scene.tables[0].rows[0].comparison.over_hosts
    assert over is not None
    assert rows[-2]["ratio"] == pytest.approx(over.ratio, rel=1e-4)
    assert rows[-1]["low"] == pytest.approx(over.prediction_low, rel=1e-4)
    html = page.render(scene, ratios=[], cells=[CellFigures("all", tuple(drawn), ())])
    assert "<summary>Hosts like these</summary>" in html
    assert "wall time by host" in html


def test_a_cell_of_the_page_has_the_figures_by_host(scene: Scene) -> None:
    (cell,) = page.cell_figures(scene)
    assert {"hosts-elapsed_s", "hosts-user_s"} <= {figure.name for figure in cell.figures}


def test_raw_data_name_the_host_of_each_trial(scene: Scene) -> None:
    header, *rows = raw.csv(scene.record).splitlines()
    at = header.split(",").index("host")
    assert {row.split(",")[at] for row in rows} == {f"node-{number}" for number in range(1, 6)}
    assert raw.shown(scene)["header"][2] == "host"


def test_verify_recomputes_what_hosts_say(scene: Scene, tmp_path: Path) -> None:
    directory = shutil.copytree(scene.record.directory, tmp_path / "run")
    path = directory / "report" / verify.REPORT
    path.parent.mkdir()
    path.write_text(document.render(scene), encoding="utf-8")

    def found() -> list[str]:
        return [each for each in verify.recompute(read(directory)) if "cannot be read" not in each]

    before = found()
    report = json.loads(path.read_bytes())
    report["analysis"]["cells"][0]["comparisons"]["elapsed_s"][0]["over_hosts"]["low"] = 1.0
    path.write_text(json.dumps(report), encoding="utf-8")
    (named,) = set(found()) - set(before)
    assert "over_hosts.low is 1.0 but recomputed" in named
    assert before == []


def test_the_r_script_has_the_hosts_only_where_there_are_any() -> None:
    assert 'c("node-1", "node-2"' in r_script.render(of_hosts(6))
    assert "host" not in r_script.render(of_hosts(0)).partition("# Everything below")[0]


def test_of_many_hosts_the_extremes_are_shown() -> None:
    effects = [
        HostEffect(host=f"node-{number:02d}", blocks=2, ratio=1 + number * 37 % 60 / 100) for number in range(60)
    ]
    found = hosts.shown(OverHosts(hosts=tuple(effects)))
    assert [round(100 * (each.ratio or 0)) for each in found] == [*range(100, 120), *range(140, 160)]
    assert hosts.shown(OverHosts(hosts=tuple(effects[:40]))) == effects[:40]


def test_a_block_that_a_host_lost_half_of_is_left_out_and_counted(farmed: Record, tmp_path: Path) -> None:
    """Its controller was killed while it took the block in; both trials are valid, and the journal calls it void."""
    whole = analysed(farmed)
    with closing(resume(shutil.copytree(farmed.directory, tmp_path / "run"))) as writer:
        writer.append(BlockVoided(cell="all", block=2, reason="lost"))
        torn = writer.record()
    analysis = analysed(torn)
    (before,), (after,) = whole.cells[0].comparisons["elapsed_s"], analysis.cells[0].comparisons["elapsed_s"]
    assert (before.n, after.n) == (BLOCKS, BLOCKS - 1)
    assert (analysis.counts.blocks_voided, analysis.counts.valid, analysis.counts.used) == (1, 24, 22)
    assert sum(each.used for each in Scene(record=torn, analysis=analysis).trials) == 22
