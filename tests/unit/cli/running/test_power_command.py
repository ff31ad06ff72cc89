"""`fairtrial power`: what it reads as an effect, the table, and the answer."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console
from support.inference.analysis_cases import Case

from fairtrial.analyse.inference import power as planned
from fairtrial.analyse.inference.power import Pilot
from fairtrial.analyse.sequential import last_look
from fairtrial.cli import app
from fairtrial.cli.running import designs, power
from fairtrial.cli.running.power import PilotSpreads
from fairtrial.errors import InputError, PlaceError, RecordError
from fairtrial.record import Record
from fairtrial.record.events import JournalLine
from fairtrial.record.models import CellLook, LookTaken, Plan
from fairtrial.run import noise
from fairtrial.study.builds import Builds
from fairtrial.study.designs.numeric_factors import Curve

PLAN = Case({"kernel": ["base", "new"], "memory": ["under", "over"]}, blocks=10).plan()
KNOWN = PilotSpreads(
    pilots=(Pilot("under", "tpm", sd=0.01, df=9), Pilot("over", "tpm", sd=0.03, df=9)),
    source="run case-1",
    block_s=600.0,
)


def designed(**design: object) -> Plan:
    return PLAN.model_copy(update={"design": PLAN.design.model_copy(update=design)})


def printed(*, effect: float | None = None, known: PilotSpreads = KNOWN, plan: Plan = PLAN) -> str:
    console = Console(width=240, record=True, file=None, quiet=False, no_color=True)
    with console.capture() as captured:
        console.print(power.render(plan, known, effect=effect))
    return captured.get()


@pytest.mark.parametrize(("text", "expected"), [("3%", 0.03), ("3 %", 0.03), ("0.05", 0.05)])
def test_an_effect_is_a_share_in_either_form(text: str, expected: float) -> None:
    assert power.share(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["much", "0", "-3%", "100%", ""])
def test_what_is_no_share_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(InputError) as refused:
        power.share(text)
    assert "--effect 3%" in refused.value.hint


def test_the_table_plans_with_the_noisiest_cell_at_the_level_of_its_family() -> None:
    said = printed()
    assert "over a family of 2 (0.025 each)" in said
    assert "run case-1" in said
    row = next(line.split() for line in said.splitlines() if line.strip().startswith("10 *"))
    expected = planned.detectable(KNOWN.pilots[1].upper, blocks=10, alpha=0.025)
    assert expected is not None
    assert f"{expected * 100:.1f}" in row
    assert "1 h 40 min" in said or "100 min" in said


def test_the_answer_is_the_noisiest_cells_number_of_blocks_and_their_hours() -> None:
    said = printed(effect=0.03)
    needed = [planned.blocks_needed(pilot.upper, effect=0.03, alpha=0.025, fewest=6) for pilot in KNOWN.pilots]
    assert f"an effect of 3 % in every cell needs {needed[1]} blocks" in said
    assert f"tpm in under: {needed[0]} blocks" in said


def test_an_effect_out_of_reach_says_so() -> None:
    loud = PilotSpreads(pilots=(Pilot("over", "tpm", sd=3.0, df=3),), source="run case-1", block_s=1.0)
    assert "an effect of 0.1 % needs more than 10000 blocks in some cell" in printed(effect=0.001, known=loud)


def test_the_plans_line_promises_nothing_of_too_few_blocks() -> None:
    assert power.sentence(PLAN, KNOWN).startswith("detectable   ± ")
    assert power.sentence(designed(blocks=6), KNOWN).startswith("detectable   ± ")
    said = power.sentence(designed(blocks=5), KNOWN)
    assert said == "detectable   unknown: needs at least 6 blocks (run case-1)"
    assert "needs at least 8 blocks" in power.sentence(designed(blocks=7, confidence=0.99), KNOWN)


def test_too_few_blocks_to_claim_anything_have_a_row_without_effects() -> None:
    said = printed(effect=0.5, plan=designed(blocks=4))
    rows = {row[0]: row[1:] for row in map(str.split, said.splitlines()) if row and row[0].isdigit()}
    assert all(rows[blocks][-4:-2] == ["–", "–"] for blocks in ("3", "5"))
    assert rows["4"][:3] == ["*", "–", "–"]
    assert "–" not in rows["6"]
    assert "an effect of 50 % in every cell needs 6 blocks" in said


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        ({"stop": "sequential", "spending": "pocock"}, "(0.025 each), of which `stop: sequential` leaves 0.00465 to"),
        ({"stop": "anytime"}, "of which `stop: anytime` leaves 0.00163 to"),
        ({"stop": "precision", "precision": 0.015}, "a cell that stops before, at ± 1.5%, has less power; planned"),
    ],
)
def test_a_rule_that_looks_often_is_planned_by_what_it_leaves_to_the_last_look(
    stop: dict[str, object], said: str
) -> None:
    plan = designed(min_blocks=3, **stop)
    assert said in printed(plan=plan)
    effect = last_look.detectable(plan, KNOWN.pilots[1].upper, blocks=10)
    fixed = planned.detectable(KNOWN.pilots[1].upper, blocks=10, alpha=0.025)
    assert effect is not None
    assert fixed is not None
    assert effect > fixed
    sentence = power.sentence(plan, KNOWN)
    assert f"± {effect * 100:.1f} % in tpm, cell over, with power 0.8" in sentence
    assert ("if all blocks run" in sentence) == (plan.design.stop == "precision")
    assert f"± {effect * 100:.1f} %" in next(line for line in printed(plan=plan).splitlines() if "10 *" in line)


def test_cells_without_a_pilot_are_named_and_not_promised() -> None:
    known = PilotSpreads(pilots=KNOWN.pilots[:1], source="run case-1", block_s=600.0)
    said = printed(effect=0.03, known=known)
    assert "an effect of 3 % in every cell of the pilot needs 6 blocks: 60 min; no pilot of tpm in over" in said
    assert power.sentence(PLAN, known).endswith("(run case-1; no pilot of tpm in over)")
    assert "no pilot" not in power.sentence(PLAN, KNOWN)


@pytest.mark.parametrize(("order", "block_s"), [("randomised_blocks", 2.0), ("duet", 1.0)])
def test_the_trials_of_a_duet_take_their_time_together(order: str, block_s: float) -> None:
    case = Case({"kernel": ["base", "new"]}, blocks=6, order=order)
    run = Record(directory=Path("case-1"), plan=case.plan(), journal=())
    vars(run)["trials"] = tuple(case.trials(tpm=lambda _levels, block: 100.0 + block))  # a trial takes a second
    assert power.of_run(run, case.plan()).block_s == pytest.approx(block_s)


def test_blocks_of_a_farm_that_came_back_after_their_cell_was_stopped_are_no_pilot() -> None:
    case = Case({"kernel": ["base", "new"]}, blocks=8)
    stopped = CellLook(cell="all", blocks=6, information=1, decision="stop", reason="difference")
    look = LookTaken(round=6, decision="stop", cells=[stopped])
    journal = (JournalLine(sequence=0, time="2026-01-01T00:00:00Z", entry=look),)
    run = Record(directory=Path("case-1"), plan=case.plan(), journal=journal)
    trials = case.trials(tpm=lambda levels, block: 100.0 + block + (levels["kernel"] == "new") * block**2)
    found = []
    for known in (trials, [each for each in trials if each.trial.round <= 6]):
        vars(run)["trials"] = tuple(known)
        found.append(power.of_run(run, case.plan()).pilots)
    assert found[0] == found[1]
    assert [pilot.df for pilot in found[0]] == [5]


def test_new_designs_are_named_and_ask_for_a_pilot_of_their_own() -> None:
    metrics = PLAN.metrics.model_copy(update={"covariates": ["time_since_boot_s"], "adjust": True})
    builds = Builds(program="/p", objects={"base": ["/a/*.o"], "new": ["/b/*.o"]}, link="cc -o {output} {objects}")
    plan = PLAN.model_copy(update={"metrics": metrics, "builds": builds, "curve": Curve(over="users", model="usl")})
    said = [str(each) for each in designs.power(plan, None)]
    assert len(said) == 3
    assert all(designs.PILOT in each for each in said)
    assert list(designs.heading(plan)) == [
        "covariates   time_since_boot_s; verdicts are of the adjusted estimates",
        "layouts      5 orders of linking, the same for all arms of a block",
    ]
    assert list(designs.power(PLAN, None)) == list(designs.heading(PLAN)) == []


def test_the_study_is_read_with_its_assignments(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("study: own\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"--set: trials\.block: unknown key"):
        app.power(study, overrides=["trials.block=3"])


@pytest.mark.parametrize(
    ("place", "way_out"),
    [
        ("local: {}", " --aa`, or name a run of the study with --from"),
        ("container: {image: none}", " --aa`, then name that run with --from"),
        ("local: {}}\ntrials: {order: duet", " --aa`, then name that run with --from"),
    ],
)
def test_a_place_that_is_not_asked_for_its_pilot_needs_the_run_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, place: str, way_out: str
) -> None:
    monkeypatch.setattr(noise, "open_place", Mock(side_effect=PlaceError("no agent", hint="")))
    study = tmp_path / "study.yaml"
    study.write_text(
        f"study: own\nplace: {{{place}}}\nworkload: {{command: {{run: 'true'}}}}\n"
        "factors: {arm: {a: {}, b: {workload: {command: {label: x}}}}}\narm: arm\nmetrics: {primary: elapsed_s}\n"
    )
    with pytest.raises(RecordError, match="the place of this study has no pilot run") as refused:
        app.power(study)
    assert refused.value.hint == f"run `fairtrial run {study}{way_out}"


def test_a_duet_takes_no_pilot_of_trials_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Mock(return_value=None)
    monkeypatch.setattr(noise, "kept", kept)
    for order, asked in (("duet", 0), ("abba", 1)):
        assert power.at_place(designed(order=order)) is None
        assert kept.call_count == asked


def test_a_study_in_sequence_is_planned_by_welchs_test() -> None:
    plan = designed(order="sequential")
    said = printed(effect=0.03, plan=plan)
    assert "Welch's t on logarithms, power 0.8" in said
    assert "paired t on log ratios, power 0.8" in printed()
    effect = planned.detectable(KNOWN.pilots[1].upper, blocks=10, alpha=0.025, paired=False)
    assert effect is not None
    assert f"{effect * 100:.1f}" in next(line for line in said.splitlines() if line.strip().startswith("10 *"))
    needed = planned.blocks_needed(KNOWN.pilots[1].upper, effect=0.03, alpha=0.025, paired=False)
    assert f"an effect of 3 % in every cell needs {needed} blocks" in said
