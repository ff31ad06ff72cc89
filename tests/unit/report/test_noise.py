"""The noise of a place in words: an A/A run's rows and sentences, and the floor beside later effects."""

from __future__ import annotations

import pytest

from fairtrial.analyse.models import Analysis
from fairtrial.analyse.noise.models import MetricNoise, NoiseFloor, NoiseProfile, SlotEffect
from fairtrial.analyse.noise.profile import rate, uniformity
from fairtrial.record import Record
from fairtrial.report import noise, text
from fairtrial.report.scene import Scene
from fairtrial.report.text import console

QUIET = MetricNoise(
    cell="low",
    metric="throughput_tpm",
    blocks=12,
    trial_sd=0.0081,
    block_sd=0.0,
    slot=SlotEffect(ratio=1.002, low=0.99, high=1.014, p=0.7),
    autocorrelation=-0.12,
    autocorrelation_limit=0.4,
    pair_sd=0.0115,
    pair_sd_upper=0.0146,
    ratio=1.001,
    floor=0.0073,
    p=0.76,
)
RESTLESS = QUIET.model_copy(
    update={
        "cell": "high",
        "slot": SlotEffect(ratio=0.95, low=0.93, high=0.97, p=0.001),
        "autocorrelation": 0.71,
        "floor": 1.07,
    }
)
PROFILE = NoiseProfile(
    study="sqlite-journal",
    date="2026-11-20T22:10:00.000Z",
    blocks=12,
    workload="tpcc",
    system="sqlite",
    metrics=(QUIET, RESTLESS),
    left_out=("failed_share in low",),
    alpha=0.05,
    uniformity=uniformity([0.76, 0.3]),
    false_positives=rate(1, of=20),
    resampled=rate(21, of=400),
)


def floor(cell: str, share: float, *, same_study: bool = True) -> NoiseFloor:
    return NoiseFloor(
        cell=cell,
        metric="throughput_tpm",
        place="local",
        share=share,
        at_blocks=6,
        aa_blocks=12,
        aa_cell=cell,
        date=PROFILE.date,
        study="sqlite-journal" if same_study else "other",
        same_study=same_study,
    )


def test_every_row_has_a_figure_under_each_heading() -> None:
    rows = noise.rows(PROFILE)
    assert [len(row) for row in rows] == [len(noise.HEADER)] * 2
    quiet = dict(zip(noise.HEADER, rows[0], strict=True))
    assert quiet["floor"] == "± 0.73 %"
    assert quiet["trial sd"] == "0.81 %"
    assert quiet["upper bound"] == "1.5 %"
    assert quiet["block sd"] == "0 %"
    assert quiet["lag-1"] == "−0.12"


def test_a_slot_effect_and_an_autocorrelation_beyond_chance_are_marked() -> None:
    quiet, restless = (dict(zip(noise.HEADER, row, strict=True)) for row in noise.rows(PROFILE))
    assert quiet["slot"] == "+0.2 %"
    assert restless["slot"] == "−5.0 % *"
    assert restless["lag-1"] == "0.71 *"
    assert restless["floor"] == "± 107 %"


def test_a_share_of_nearly_all_has_no_power_of_ten() -> None:
    nearly = QUIET.model_copy(update={"trial_sd": 0.9962, "block_sd": 0.99449, "pair_sd": 0.000123})
    (row,) = noise.rows(PROFILE.model_copy(update={"metrics": (nearly,)}))
    shown = dict(zip(noise.HEADER, row, strict=True))
    assert [shown[name] for name in ("trial sd", "block sd", "pair sd")] == ["100 %", "99 %", "0.012 %"]


def test_what_could_not_be_computed_is_no_number() -> None:
    bare = PROFILE.model_copy(
        update={"metrics": (QUIET.model_copy(update={"slot": None, "autocorrelation": None}),), "uniformity": None}
    )
    row = dict(zip(noise.HEADER, noise.rows(bare)[0], strict=True))
    assert (row["slot"], row["lag-1"]) == ("–", "–")
    assert not any("Kolmogorov" in sentence for sentence in noise.sentences(bare))


def test_the_sentences_give_rates_with_their_exact_intervals_and_name_what_is_left_out() -> None:
    whole = " ".join(noise.sentences(PROFILE))
    assert "12 blocks per cell" in whole
    assert "1 of 20 (5.0 %, 95 % interval 0.1 to 24.9 %)" in whole
    assert "21 of 400" in whole
    assert "failed_share in low" in whole
    none = PROFILE.model_copy(update={"false_positives": rate(0, of=0)})
    assert "none tested" in " ".join(noise.sentences(none))


def test_equal_floors_are_said_once_and_different_ones_by_cell(analysis: Analysis) -> None:
    same = analysis.model_copy(update={"floors": (floor("low", 0.007), floor("high", 0.007))})
    assert noise.floors(same, "throughput_tpm") == [
        "noise floor of this place: ± 0.7 % with 6 blocks (A/A, 12 blocks, 2026-11-20, sqlite-journal)"
    ]
    other = analysis.model_copy(update={"floors": (floor("low", 0.007), floor("high", 0.02))})
    (said,) = noise.floors(other, "throughput_tpm")
    assert "± 0.7 % with 6 blocks in low, ± 2 % with 6 blocks in high" in said
    assert noise.floors(other, "latency_ns_p99") == []


def test_another_studys_noise_says_whose_it_is_and_that_it_is_a_hint(analysis: Analysis) -> None:
    hinted = analysis.model_copy(update={"floors": (floor("low", 0.007, same_study=False),)})
    (said,) = noise.floors(hinted, "throughput_tpm")
    assert "from a different study, other: only a rough guide" in said


def test_the_noise_of_another_size_says_which_it_is_and_that_it_is_a_hint(analysis: Analysis) -> None:
    own = floor("low", 0.007).model_copy(update={"study": analysis.study})
    cases = [
        (own.model_copy(update={"size": "ci"}), f"{analysis.study} in size ci)"),
        (
            own.model_copy(update={"size": "ci", "same_study": False}),
            f"from a different size of the study, {analysis.study} in size ci: only a rough guide)",
        ),
    ]
    for each, expected in cases:
        (said,) = noise.floors(analysis.model_copy(update={"floors": (each,)}), "throughput_tpm")
        assert said.endswith(f", {expected}")


@pytest.mark.parametrize("floors", [(), (floor("low", 0.007), floor("high", 0.007))])
def test_the_text_shows_the_floor_below_its_metric_only_if_one_is_known(
    record: Record, analysis: Analysis, floors: tuple[NoiseFloor, ...]
) -> None:
    said = " ".join(text.render(Scene(record, analysis.model_copy(update={"floors": floors}))).split())
    assert ("Noise floor of this place: ± 0.7 % with 6 blocks" in said) == bool(floors)


def test_an_aa_runs_text_has_the_profile_and_an_ordinary_ones_has_not(record: Record, analysis: Analysis) -> None:
    assert "Noise of this place" not in text.render(Scene(record, analysis))
    said = text.render(Scene(record, analysis.model_copy(update={"noise": PROFILE})))
    assert "Noise of this place" in said
    assert max(len(line) for line in said.split("Noise of this place")[1].splitlines()[:30]) <= 100
    assert console.render(analysis.model_copy(update={"noise": PROFILE}))
