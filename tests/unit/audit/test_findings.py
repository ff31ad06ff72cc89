"""One printed figure against one value; and every published figure, changed by a digit, is caught."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial import audit as publications
from fairtrial.audit import Dataset
from fairtrial.audit.claims.models import Claim
from fairtrial.audit.findings import EXPLAINED, Passage, figure


@pytest.mark.parametrize(
    ("printed", "value", "computed", "kind"),
    [
        ("1.5", 1.5, "1.5", None),
        ("1.50", 1.5, "1.50", None),
        ("2", 1.5, "2", None),
        ("2", 2.5, "2", None),  # as C, R and Python print it: ties to even
        ("3", 2.5, "3", None),  # ties up
        ("1.00", 1.005, "1.00", None),  # the binary value is a little less
        ("1.01", 1.005, "1.01", None),
        ("0.4", 1000.8 - 1000.45, "0.4", None),  # 0.34999999999991, of decimal values 0.35
        ("0.2", 0.2501, "0.3", "cut"),
        ("0.3", 0.2499, "0.2", "differs"),
        ("0.1000000000000000055511", 0.1, "0.1000000000000000055511", None),
        ("-2", -1.5, "-2", None),
        ("1", 1.9, "2", "cut"),
        ("-1.5", -1.59, "-1.6", "cut"),
        ("3", 1.9, "2", "differs"),
        ("0", 0.4, "0", None),
        ("100", 1e2, "100", None),
        ("3.0e-09", 3.02e-9, "3.0e-9", None),
        ("4.45e3", 4449.7, "4.45e3", None),
        ("4.45e3", 4461.0, "4.46e3", "differs"),
        ("4,002", 4001.6, "4002", None),
        ("1 234 567.5", 1234567.46, "1234567.5", None),
        ("\u22121.5", -1.52, "-1.5", None),
        ("0.05*", 0.049, "0.05", None),
        ("12 %", 12.4, "12", None),
        ("<0.001", 0.0004, "0.0004", None),
        ("< 0.001", 0.001, "0.001", "bound"),
        ("1e-40", 0.5, f"{0.5:.40f}", "differs"),
        ("≥ 30", 30.0, "30", None),
        ("> 30", 30.0, "30", "bound"),
    ],
)
def test_a_figure_agrees_at_the_digits_printed(*, printed: str, value: float, computed: str, kind: str | None) -> None:
    assert figure(printed, value) == (computed, kind)


@pytest.mark.parametrize(
    "text", ["", "fast", "1.2.3", "4,02", "0,123", "1e99999", "<", "e5", "0x10", "0." + "1" * 2500, "1/2", "nan", "inf"]
)
def test_what_is_no_figure_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a figure"):
        figure(text, 1.0)


@given(st.decimals(-10_000, 10_000, places=3))
def test_a_value_printed_whole_always_agrees(value: Decimal) -> None:
    assert figure(f"{value:.3f}", float(value))[1] is None


@given(st.decimals(-10_000, 10_000, places=3))
def test_a_value_as_c_r_and_python_round_it_always_agrees(value: Decimal) -> None:
    assert figure(f"{float(value):.2f}", float(value))[1] is None


@given(st.floats(-1e6, 1e6), st.integers(0, 4))
def test_what_is_computed_agrees_with_itself(value: float, places: int) -> None:
    printed = "0." + "0" * places if places else "0"
    computed, _ = figure(printed, value)
    assert figure(computed, value)[1] is None


def test_every_kind_is_explained_in_its_finding() -> None:
    for kind, why in EXPLAINED.items():
        found = Passage("here").checked("what", "1", computed="2", kind=kind)
        assert (found.verdict, found.kind, found.why) == ("contradicted", kind, why)


def test_a_finding_that_agrees_or_is_unknown_is_not_contradicted() -> None:
    confirmed = Passage("here").checked("what", "1", computed="1", kind=None)
    unknown = Passage("here").unknown("what", "1", "no data")
    assert [(each.verdict, each.kind) for each in (confirmed, unknown)] == [
        ("confirmed", None),
        ("not checkable", None),
    ]
    assert unknown.computed == ""


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_value_that_is_not_finite_is_not_checkable(value: float) -> None:
    assert figure("5", value)[1] == "differs"
    assert Passage("here").figure("what", "5", value).verdict == "not checkable"


def nudged(text: str) -> str:
    """The last digit, another."""
    return text[:-1] + str((int(text[-1]) + 5) % 10)


def tables(dataset: Dataset) -> list[Claim]:
    return [claim for claim in dataset.claims if claim.where.startswith("Table")]


@pytest.mark.parametrize("name", ["mglru-mariadb-tpcc", "mglru-fio-pmem"])
def test_every_mean_of_a_published_table_changed_by_a_digit_is_caught(name: str) -> None:
    dataset = publications.load(name)
    for claim in tables(dataset):
        raw = json.loads(claim.model_dump_json(by_alias=True))
        for cell in raw["cells"]:
            cell["means"] = [nudged(text) for text in cell["means"]]
        changed = vars(dataset) | {"claims": (Claim.model_validate(raw),), "r_output": ()}
        found = publications.audit(Dataset(**changed)).findings
        means = [each for each in found if each.what.endswith(": mean")]
        assert len(means) == 2 * len(claim.cells)
        assert {each.verdict for each in means} == {"contradicted"}


def test_without_rows_every_claim_on_data_cannot_be_checked() -> None:
    dataset = publications.load("mglru-mariadb-tpcc")
    empty = Dataset(**(vars(dataset) | {"rows": (), "claims": tuple(tables(dataset)), "r_output": ()}))
    findings = publications.audit(empty).findings
    assert len(findings) == 12
    assert {(each.verdict, each.why) for each in findings} == {
        ("not checkable", "the publication has no raw data"),
    }


def test_one_missing_cell_leaves_the_others_checked() -> None:
    dataset = publications.load("mglru-mariadb-tpcc")
    rows = tuple(row for row in dataset.rows if row["virtual_users"] != "100")
    (claim,) = [each for each in dataset.claims if each.where == "Table 1"]
    found = publications.audit(Dataset(**(vars(dataset) | {"rows": rows, "claims": (claim,), "r_output": ()}))).findings
    unknown = [each for each in found if each.verdict == "not checkable"]
    assert [each.why for each in unknown] == ["the data have no rows at these levels"] * 2
    assert len(found) - len(unknown) == 4 * 4
