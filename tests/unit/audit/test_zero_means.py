"""A first mean of 0: R prints its test, and a change from it has no percentage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fairtrial.analyse.inference import t_tests
from fairtrial.audit.checking import r_line
from fairtrial.audit.comparisons import CONFIDENCE, ArmComparison

FIRST, SECOND = np.array([-1.0, 1.0, 0.0]), np.array([10.0, 11.0, 12.0])


def test_a_line_of_r_output_whose_first_mean_is_0_has_no_percentages() -> None:
    test = t_tests.welch(FIRST, SECOND, confidence=CONFIDENCE)
    assert test is not None
    found = ArmComparison(
        metric="m", contrast="c", at={}, first="a", second="b", values=(FIRST, SECOND), units=test, logs=test
    )
    line, theirs = r_line(found), stats.ttest_ind(FIRST, SECOND, equal_var=False)
    assert found.significant
    assert (line["percent_low"], line["percent_high"], line["mean_first"], line["mean_second"]) == ("", "", "0", "11")
    assert float(line["t"]) == pytest.approx(theirs.statistic, rel=1e-4)
    assert float(line["low"]) == pytest.approx(theirs.confidence_interval().low, rel=1e-6)
    assert found.percent == (-math.inf, math.inf)
