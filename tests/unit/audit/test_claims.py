"""The transcriptions are whole and well-formed: what is not transcribed cannot disagree."""

from decimal import Decimal
from itertools import chain

import pytest

from fairtrial import audit as publications
from fairtrial.audit import Dataset
from fairtrial.audit.claims.models import Claim
from fairtrial.audit.r_printing import number, numbers

BY_NAME = pytest.mark.parametrize("dataset", publications.names(), indirect=True)


@pytest.fixture(scope="module")
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return publications.load(request.param)


def printed(claim: Claim) -> list[str]:
    cells = chain.from_iterable(
        (*(each.means or ()), *(each.interval or ()), *(each.percent or ()), *each.pairs) for each in claim.cells
    )
    return [*cells, *(claim.pair_range or ()), *(each.printed for each in claim.arithmetic)]


@BY_NAME
def test_every_table_of_the_publication_is_transcribed_cell_by_cell(dataset: Dataset) -> None:
    claims = {claim.where: claim for claim in dataset.claims}
    for table in publications.tables(dataset):
        if table.description.name.startswith("Table"):
            claim = claims[table.description.name]
            assert (claim.metric, claim.contrast) == (table.description.metric, table.description.contrast)
            transcribed = [each.at for each in claim.cells if each.means and each.interval]
            assert sorted(map(str, map(sorted, transcribed))) == sorted(
                str(sorted(each.at)) for each in table.comparisons
            )


@BY_NAME
def test_every_claim_names_a_comparison_of_the_data(dataset: Dataset) -> None:
    for claim in dataset.claims:
        if claim.cells:
            combinations = dataset.combinations(without=claim.contrast)
            assert [each.at for each in claim.cells if each.at not in combinations] == []
            assert len({str(sorted(each.at.items())) for each in claim.cells}) == len(claim.cells)


@BY_NAME
def test_every_printed_figure_is_a_number_and_every_pair_is_low_to_high(dataset: Dataset) -> None:
    for claim in dataset.claims:
        assert all(Decimal(figure).is_finite() for figure in printed(claim))
        for cell in claim.cells:
            for bounds in (cell.interval, cell.percent):
                assert bounds is None or Decimal(bounds[0]) < Decimal(bounds[1])


@BY_NAME
def test_r_output_is_transcribed_in_the_publications_own_sign(dataset: Dataset) -> None:
    """R subtracts the second mean from the first, the script turns the percentage around."""
    for line in dataset.r_output:
        assert (Decimal(line.t) > 0) == (Decimal(line.mean_first) > Decimal(line.mean_second))
        assert Decimal(line.low) < Decimal(line.mean_first) - Decimal(line.mean_second) < Decimal(line.high)
        if line.percent_low:
            assert (Decimal(line.percent_low) > 0) == (Decimal(line.mean_second) > Decimal(line.mean_first))


@BY_NAME
def test_every_row_of_the_data_is_in_the_design_and_every_cell_has_the_same_trials(dataset: Dataset) -> None:
    metrics = list(dataset.description.metrics)
    counted = sum(len(dataset.values(metrics[0], levels)) for levels in dataset.combinations())
    assert counted == len(dataset.rows)
    factors = list(dataset.description.factors)
    keys = [tuple(row[name] for name in [*factors, "trial"]) for row in dataset.rows]
    assert len(set(keys)) == len(keys)


@BY_NAME
def test_both_directions_of_every_metric_are_printed(dataset: Dataset) -> None:
    """The arm within each condition, and a condition within each arm."""
    described = dataset.description
    for metric in described.metrics:
        contrasts = {table.contrast for table in described.tables if table.metric == metric}
        assert described.arm in contrasts
        assert contrasts - {described.arm}


@BY_NAME
def test_percentages_and_differences_are_of_one_piece(dataset: Dataset) -> None:
    for table in publications.tables(dataset):
        for each in table.comparisons:
            low, high = each.ratio_percent
            assert -100 < low < high
            assert each.percent[0] * each.means[0] / 100 == pytest.approx(each.units.low)
            assert each.units.estimate == pytest.approx(each.means[1] - each.means[0])


@pytest.mark.parametrize(
    ("values", "digits", "expected"),
    [
        ([-1463.17673, 40.97673], 7, ["-1463.17673", "40.97673"]),  # the smaller one needs five decimals for 7 digits
        ([-7878.98, 2611.38], 7, ["-7878.98", "2611.38"]),
        ([8410.71, 11741.85], 7, ["8410.71", "11741.85"]),
        ([14564.9, 15993.49], 7, ["14564.90", "15993.49"]),
        ([134.89], 5, ["134.89"]),
        ([9.0], 5, ["9"]),
        ([3.4992e-05], 4, ["3.499e-05"]),
        ([0.00245932], 4, ["0.002459"]),
        ([0.0], 7, ["0"]),
        ([100000.0], 7, ["1e+05"]),
        ([123456.0], 7, ["123456"]),
    ],
)
def test_numbers_as_r_documents_them(values: list[float], digits: int, expected: list[str]) -> None:
    assert numbers(values, digits=digits) == expected


def test_r_shows_seven_digits_unless_told() -> None:
    assert number(3.14159265358979) == "3.141593"
