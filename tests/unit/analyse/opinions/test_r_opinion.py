"""R's own t.test and p.adjust on whole studies, every comparison in one call of Rscript."""

from __future__ import annotations

import csv
import math
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.inference.analysis_cases import Case
from support.inference.exchanged import by_t

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Comparison

SCRIPT = r"""
data <- read.csv(commandArgs(TRUE)[1])
raised <- function(p, choices, exact) {
  if (p >= 0.05 || choices <= 1) return(p)
  w <- 1 - 1 / sqrt(choices)
  max(p, p^(1 - w) * exact()^w)
}
over_blocks <- function(d, p, size) raised(p, 0.05 / size * 2^(length(d) - 1), function() {
  signs <- as.matrix(expand.grid(rep(list(c(-1, 1)), length(d))))
  side <- if (mean(d) > 0) "greater" else "less"
  c(mean(abs(signs %*% d) >= abs(sum(d)) - 1e-12), min(1, 2 * wilcox.test(d, alternative = side, exact = TRUE)$p.value))
})
without_blocks <- function(a, b, p, size) raised(p, 0.05 / size * choose(length(a) + length(b), length(a)) / 2,
  function() {
    side <- if (mean(b) > mean(a)) "greater" else "less"
    min(1, 2 * wilcox.test(b, a, alternative = side, exact = TRUE)$p.value)
  })
inside_over_blocks <- function(d, at, p, size) raised(p, 0.05 / size * 2^length(d), function() {
  near <- if (mean(d) > 0) at - d else at + d
  signs <- as.matrix(expand.grid(rep(list(c(-1, 1)), length(d))))
  c(mean(abs(signs %*% near) >= abs(sum(near)) - 1e-12) / 2,
    wilcox.test(near, alternative = "greater", exact = TRUE)$p.value)
})
inside_without_blocks <- function(a, b, at, p, size) raised(p, 0.05 / size * choose(length(a) + length(b), length(a)),
  function() {
    if (mean(b) > mean(a)) wilcox.test(a + at, b, alternative = "greater", exact = TRUE)$p.value
    else wilcox.test(b + at, a, alternative = "greater", exact = TRUE)$p.value
  })
one <- function(rows) {
  base <- rows$base[!is.na(rows$base)]
  new <- rows$new[!is.na(rows$new)]
  both <- rows[!is.na(rows$base) & !is.na(rows$new), ]
  paired <- rows$paired[1] == 1
  logs <- if (paired) t.test(log(both$new), log(both$base), paired = TRUE) else t.test(log(new), log(base))
  estimate <- if (paired) mean(log(both$new) - log(both$base)) else mean(log(new)) - mean(log(base))
  raw <- t.test(new, base)
  at <- log(1 + 0.02)
  inside <- function(side, mu) {
    if (paired) t.test(log(both$new), log(both$base), paired = TRUE, mu = mu, alternative = side)$p.value
    else t.test(log(new), log(base), mu = mu, alternative = side)$p.value
  }
  ranks <- if (paired) wilcox.test(log(both$new / both$base), exact = TRUE, conf.int = TRUE)
    else wilcox.test(log(new), log(base), exact = TRUE, conf.int = TRUE)
  p <- logs$p.value
  held <- if (paired) over_blocks(log(both$new / both$base), p, rows$size[1])
    else without_blocks(log(base), log(new), p, rows$size[1])
  same <- max(inside("greater", -at), inside("less", at))
  held_same <- if (paired) inside_over_blocks(log(both$new / both$base), at, same, rows$size[1])
    else inside_without_blocks(log(base), log(new), at, same, rows$size[1])
  c(p, held, exp(estimate), exp(logs$conf.int), raw$statistic, raw$parameter, raw$p.value, raw$conf.int,
    held_same, ranks$p.value, exp(ranks$estimate), exp(ranks$conf.int))
}
ids <- unique(data$id)
rows <- t(sapply(ids, function(id) one(data[data$id == id, ])))
family <- data$family[match(ids, data$id)]
adjusted <- ave(rows[, 2], family, FUN = function(p) p.adjust(p, method = "holm"))
same <- ave(rows[, 11], family, FUN = function(p) p.adjust(p, method = "holm"))
write.table(cbind(rows, adjusted, same), row.names = FALSE, col.names = FALSE, sep = ",")
"""
FACTORS = {"kernel": ["base", "two"], "memory": ["least", "under", "even", "over"]}
pytestmark = pytest.mark.servers


def studies() -> list[Case]:
    return [Case(FACTORS, blocks=n, order=order) for n in (2, 3, 6, 12) for order in ("abba", "sequential")]


def opinion(found: Comparison) -> list[float]:
    """R gives the range of all shifts where n is too small for an interval; we give none."""
    rank = found.rank
    assert rank is not None
    assert rank.shift.estimate is not None
    low, high = (math.nan if end is None else end for end in (rank.shift.low, rank.shift.high))
    return [rank.p, rank.shift.estimate, low, high]


def figures(found: Comparison) -> list[float | None]:
    assert found.welch is not None
    welch, ratio = found.welch, found.ratio
    return [
        by_t(found),
        found.p,
        *(ratio.estimate, ratio.low, ratio.high),
        *(welch.t, welch.df, welch.p, welch.difference.low, welch.difference.high),
        *(found.p_equivalence, *opinion(found), found.p_adjusted, found.p_equivalence_adjusted),
    ]


def test_r_gives_the_same_figures_for_every_comparison_of_eight_studies(tmp_path: Path) -> None:
    assert shutil.which("Rscript"), "install r-base-core"
    rows: list[list[object]] = []
    ours: list[list[float | None]] = []
    for number, case in enumerate(studies()):
        random = np.random.default_rng(number)
        values: dict[tuple[str, ...], float] = {}

        def value(levels: Mapping[str, str], block: int, random: np.random.Generator = random) -> float:
            lost = levels["kernel"] == "two" and block == 5  # unequal n in the longer studies
            return math.nan if lost else float(np.exp(random.normal(3, 0.02)))

        trials = case.trials(tpm=value)
        for each in trials:
            values[each.trial.cell, each.trial.arm, str(each.trial.block)] = each.scalars["tpm"]
        for cell in analyse(case.plan(), trials).cells:
            for found in cell.comparisons["tpm"]:
                identity = f"{number} {cell.cell} {found.arm}"
                ours.append(figures(found))
                for block in range(1, case.blocks + 1):
                    pair = [values[cell.cell, arm, str(block)] for arm in ("base", found.arm)]
                    printed = ["NA" if math.isnan(each) else repr(each) for each in pair]
                    rows.append([identity, number, found.family_size, int(case.order != "sequential"), *printed])
    data, script = tmp_path / "data.csv", tmp_path / "script.r"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "family", "size", "paired", "base", "new"], *rows])
    script.write_text(SCRIPT)
    done = subprocess.run(["Rscript", "--vanilla", script, data], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = [[float(each) for each in line] for line in csv.reader(done.stdout.splitlines())]
    assert len(theirs) == len(ours) == 32
    unknown = 0
    for found_figures, expected in zip(ours, theirs, strict=True):
        pairs = zip(found_figures, expected, strict=True)
        known = [(own, other) for own, other in pairs if own is None or not math.isnan(own)]
        unknown += len(expected) - len(known)
        assert [own for own, _ in known] == pytest.approx([other for _, other in known], rel=1e-8, abs=1e-12)
    # Two blocks and three have no exact interval, nor have 2 + 2 and 3 + 3 trials, nor 5 whole blocks of 6.
    assert unknown == 2 * len(FACTORS["memory"]) * (2 + 2 + 1)
