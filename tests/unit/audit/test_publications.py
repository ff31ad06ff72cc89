"""Published studies: R's output to the last digit, and every place where a publication disagrees with its data."""

import json
import shutil
import subprocess
from functools import cache

import pytest

from fairtrial import audit as publications
from fairtrial.audit import Audit, AuditFinding, Dataset, comparisons, r_printing
from fairtrial.audit.checking import r_line
from fairtrial.audit.findings import figure
from fairtrial.audit.models import ROutput
from fairtrial.errors import InputError

NAMES = ["mariadb-fast-mutex", "mglru-fio-pmem", "mglru-mariadb-tpcc"]
LOADED = cache(publications.load)


def test_all_publications_with_raw_data_are_there() -> None:
    assert publications.names() == NAMES


def test_an_unknown_publication_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="`mariadb-fast-mutex`, `mglru-fio-pmem`, `mglru-mariadb-tpcc`"):
        publications.load("mglru")


def of(line: ROutput, dataset: Dataset) -> dict[str, str]:
    (found,) = [
        each
        for each in comparisons.compared(dataset, metric=line.metric, contrast=line.contrast)
        if (each.at, each.first, each.second) == (line.levels, line.first, line.second)
    ]
    return r_line(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_digit_of_the_published_r_output(name: str) -> None:
    ours = [(line, of(line, LOADED(name))) for line in LOADED(name).r_output]
    printed = [{column: getattr(line, column) for column in found} for line, found in ours]
    assert [found for _, found in ours] == printed


def test_the_published_r_output_is_whole() -> None:
    tests = {name: len(LOADED(name).r_output) for name in NAMES}
    assert tests == {"mariadb-fast-mutex": 0, "mglru-fio-pmem": 18, "mglru-mariadb-tpcc": 12}


def contradicted(audit: Audit) -> list[AuditFinding]:
    return [each for each in audit.findings if each.verdict == "contradicted"]


def named(found: list[AuditFinding], kind: str) -> list[tuple[str, str, str, str]]:
    return [(each.where, each.what, each.printed, each.computed) for each in found if each.kind == kind]


def test_where_the_mariadb_publication_disagrees_with_its_data() -> None:
    checked = publications.audit(LOADED("mglru-mariadb-tpcc"))
    assert named(contradicted(checked), "cut") == [
        ("Table 1", "underutilizing, 100: interval", "-40.97", "-40.98"),
        ("Table 1", "underutilizing, 100: interval", "1463.17", "1463.18"),
        ("Table 1", "overcommitting, 100: interval", "-1330.61", "-1330.62"),
        ("Table 1", "overcommitting, 100: interval", "30.41", "30.42"),
    ]
    labels = [(printed, computed) for _, _, printed, computed in named(contradicted(checked), "label")]
    assert labels[:2] == [("50g 100vu", "m1 c1"), ("50g 400vu", "m1 c2")]
    assert labels[-1] == ("patched 600vu", "k2 c3")
    assert len(labels) == 12
    assert len(contradicted(checked)) == 16


def test_where_the_fio_publication_disagrees_with_its_data() -> None:
    checked = publications.audit(LOADED("mglru-fio-pmem"))
    before = "throughput, before Table 2"
    assert named(contradicted(checked), "elsewhere") == [
        (
            before,
            "random, baseline: percent",
            "[-11.54, -11.02] %",
            "[-0.66, 0.82] %; the printed interval is that of baseline, zipf",
        )
    ]
    assert named(contradicted(checked), "nowhere") == [
        (before, "zipf, baseline: percent", "[-16.91, -12.01] %", "[-11.54, -11.02] %")
    ]
    assert named(contradicted(checked), "not significant") == [
        (before, "random, baseline: claim", "[-11.54, -11.02] %", "p = 0.8213")
    ]
    assert named(contradicted(checked), "empty rest") == [
        (before, "the rest", "no significant change", "all 6 comparisons are listed")
    ]
    assert [what for _, what, _, _ in named(contradicted(checked), "sign")] == [
        "random, baseline: wording",
        "zipf, baseline: wording",
        "gaussian, baseline: wording",
        "zipf, patched: wording",
        "gaussian, patched: wording",
        "random, 40: wording",
        "random, 80: wording",
        "zipf, 80: wording",
        "gaussian, 80: wording",
    ]
    assert [(where, printed, computed) for where, _, printed, computed in named(contradicted(checked), "cut")] == [
        ("Table 1", "3275", "3276"),
        ("Table 1", "3562", "3563"),
        ("Table 1", "600", "601"),
        ("Table 1", "967", "968"),
        ("Table 1", "14181", "14182"),
        ("Table 1", "1220", "1221"),
        ("Table 1", "14564", "14565"),
        ("Table 1", "1348", "1349"),
        ("Table 1", "2631", "2632"),
        ("Table 2", "11741", "11742"),
        ("Table 2", "14181", "14182"),
        ("Table 2", "-1361", "-1362"),
        ("Table 3", "217", "218"),
        ("Table 3", "457", "458"),
        ("Table 3", "15611", "15612"),
        ("Table 3", "-7848", "-7849"),
    ]
    assert len(contradicted(checked)) == 29


def test_the_mutex_publication_agrees_with_its_data() -> None:
    checked = publications.audit(LOADED("mariadb-fast-mutex"))
    assert (checked.count("confirmed"), contradicted(checked)) == (16, [])


def test_a_changed_figure_is_found() -> None:
    """The check can fail: one digit of one claim, changed."""
    dataset = LOADED("mariadb-fast-mutex")
    text = [claim.model_dump_json(by_alias=True).replace("14.97", "14.79") for claim in dataset.claims]
    changed = [type(claim).model_validate_json(each) for claim, each in zip(dataset.claims, text, strict=True)]
    checked = publications.audit(publications.Dataset(**(vars(dataset) | {"claims": tuple(changed)})))
    assert [(each.printed, each.computed, each.kind) for each in contradicted(checked)] == [
        ("14.79", "14.97", "differs")
    ]


def test_a_false_comparison_of_effects_is_found() -> None:
    dataset = LOADED("mglru-fio-pmem")
    (claim,) = [each for each in dataset.claims if each.milder_at]
    turned = claim.model_copy(update={"milder_at": {"kernel": "baseline"}})
    true, false = (
        publications.audit(publications.Dataset(**(vars(dataset) | {"claims": (each,), "r_output": ()})))
        for each in (claim, turned)
    )
    assert (true.count("confirmed"), contradicted(true)) == (3, [])
    assert [each.kind for each in contradicted(false)] == ["order"] * 3


@pytest.mark.parametrize(
    ("printed", "value", "kind"),
    [
        ("13", 12.5, None),  # half rounds away from zero, as people do
        ("-3", -2.5, None),
        ("14564", 14564.9, "cut"),
        ("-1361", -1361.52, "cut"),
        ("14566", 14564.9, "differs"),
        ("176362.0", 176362.01, None),
        ("0.00", -0.001, None),
    ],
)
def test_rounding_is_told_from_cutting(printed: str, value: float, kind: str | None) -> None:
    assert figure(printed, value)[1] == kind


def test_facts_a_reader_should_know() -> None:
    mariadb, fio, mutex = (list(publications.facts(LOADED(name))) for name in reversed(NAMES))
    assert any(fact.startswith("tpm: values of 12 of 12 groups ascend;") for fact in mariadb)
    assert "p99_latency_us at patched random 80: zero_variance: all 10 values are 15008" in fio
    assert not any("ascend" in fact for fact in fio)
    assert (
        "transactions by server: 5 of 6 intervals exclude 0, 3 of 6 comparisons remain significant after Holm" in mutex
    )
    assert any("n is as small as 2" in fact for fact in mutex)


NUMBERS: list[tuple[list[float], int]] = [
    ([3.499e-05], 4),
    ([0.0001234], 4),
    ([100000.0], 7),
    ([1e5 + 0.5, 3.0], 7),
    ([-1463.17673, 40.97673], 7),
    ([0.1 + 0.2], 7),
    ([123456789.0], 7),
    ([0.0], 5),
    ([0.0], 7),
    ([1.5, 1e-10], 7),
    ([-21605.7031, 1949.5031], 7),
    ([2.0, 0.30000001], 7),
    ([99999.96], 5),
]


@pytest.mark.servers
def test_r_prints_the_same() -> None:
    rscript = shutil.which("Rscript")
    assert rscript, "install r-base-core"
    calls = [f"format(c({', '.join(map(repr, values))}), digits = {digits})" for values, digits in NUMBERS]
    script = "\n".join(f"cat(trimws({call}), sep = '\\t'); cat('\\n')" for call in calls)
    printed = subprocess.run([rscript, "-e", script], check=True, capture_output=True, text=True).stdout
    ours = [r_printing.numbers(values, digits=digits) for values, digits in NUMBERS]
    assert json.dumps([line.split("\t") for line in printed.splitlines()]) == json.dumps(ours)


@pytest.mark.parametrize(
    ("p", "printed"),
    [(1e-17, "< 2.2e-16"), (3.4365e-16, "3.437e-16"), (0.305, "0.305"), (0.0021, "0.0021"), (1.0, "1")],
)
def test_p_values_as_r_prints_them(p: float, printed: str) -> None:
    assert r_printing.p_value(p) == printed
