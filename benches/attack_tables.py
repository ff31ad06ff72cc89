"""Random small tables, judged as `fairtrial analyse` does: what must not matter to a verdict, and R's own figures."""

from __future__ import annotations

import csv
import io
import math
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtrial import imports as foreign
from fairtrial.analyse import analyse_table
from fairtrial.analyse.models import Comparison, Interval
from fairtrial.errors import InputError
from fairtrial.study.catalogue import Better

Values = NDArray[np.float64]
Key = tuple[str, str, str]  # levels of x and y, and the arm
Figures = dict[str, float | str | None]
Before = Mapping[Key, Comparison]

SHOWN = 3  # violations of one attack that are printed: more of one kind say nothing new
LEVEL = 0.05
RELATIVE, ABSOLUTE = 1e-6, 1e-9  # logarithms of values in another unit are rounded differently
AS_R = 1e-9
STALL, STALLED, ZERO, PAIRED = math.log(0.85), 0.2, 0.3, 0.7  # how much a stall takes, and shares
CONSTANT = "constant"
# Figures that a unit leaves alone, or what multiplies a whole block. Ranks are none of them where several blocks have
# one ratio: which of these is larger is a matter of rounding, and ranks believe it.
BY_T = ("ratio", "ratio, low", "ratio, high", "t's p", "n")
ONE_RATIO = ("rounded", "powers")
OPPOSITE = {"faster": "slower", "slower": "faster"}


@dataclass(frozen=True)
class Attacked:
    """What came of one attack."""

    name: str
    count: int
    violations: tuple[str, ...]

    def __str__(self) -> str:
        shown = [f"\n  - {each}" for each in self.violations[:SHOWN]]
        return f"{self.name}: {self.count:,} tried, {len(self.violations):,} violations{''.join(shown)}"


class Row(NamedTuple):
    """One trial: `v` is primary, `w` a second metric."""

    arm: str
    x: str
    y: str
    block: str
    v: float
    w: float


@dataclass(frozen=True)
class Drawn:
    """A table and what is asked of it."""

    kind: str
    rows: tuple[Row, ...]
    paired: bool
    baseline: str
    better: Better = "higher"
    values: tuple[str, ...] = ("v",)

    @property
    def arms(self) -> list[str]:
        return list(dict.fromkeys(row.arm for row in self.rows))

    @property
    def csv(self) -> str:
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(
            [*row[:4], *("NA" if math.isnan(value) else repr(value) for value in row[4:])] for row in self.rows
        )
        return written.getvalue()


# Values of one arm in one cell, from their logarithms and the metric's level.
CONTINUOUS: dict[str, Callable[[np.random.Generator, Values, float], Values]] = {
    "plain": lambda _random, logs, level: level * np.exp(logs),
    "stalls": lambda random, logs, level: level * np.exp(logs + STALL * (random.random(len(logs)) < STALLED)),
    "signed": lambda _random, logs, level: level * np.expm1(logs),
}
COARSE: dict[str, Callable[[np.random.Generator, Values, float], Values]] = {
    "rounded": lambda _random, logs, _level: np.round(100 * np.exp(logs)),
    "zeros": lambda random, logs, level: np.where(random.random(len(logs)) < ZERO, 0.0, level * np.exp(logs)),
    CONSTANT: lambda _random, logs, level: np.full(len(logs), level * np.exp(logs[0])),
    "powers": lambda random, logs, _level: np.exp2(random.integers(0, 4, len(logs)).astype(np.float64)),
}
KINDS = {**CONTINUOUS, **COARSE}
BLOCKS, COARSE_BLOCKS = (
    12,
    6,
)  # with more, coarse values are tested by random exchanges, which the order of rows changes


def draw(random: np.random.Generator, *, kinds: Sequence[str] = tuple(KINDS), arms: int = 3) -> Drawn:
    """A table that can be analysed: one of a lost arm or without a whole block is drawn again."""
    while True:
        drawn = _draw(random, kind=str(random.choice(kinds)), arms=int(random.integers(2, arms + 1)))
        try:
            analysed(drawn)
        except InputError:
            continue
        return drawn


def _draw(random: np.random.Generator, *, kind: str, arms: int) -> Drawn:
    n = int(random.integers(3, 1 + (COARSE_BLOCKS if kind in COARSE else BLOCKS)))
    level, spread = 10 ** random.uniform(-6, 9), random.choice([0.003, 0.01, 0.05])
    lost, absent = random.choice([0.0, 0.1]), random.choice([0.0, 0.05])
    xs, ys = (range(random.integers(1, 3)) for _ in range(2))
    rows: list[Row] = []
    for x in xs:
        for y in ys:
            shared = random.normal(0, 0.03, n)
            for arm in range(arms):
                logs = shared + random.choice([0.0, 0.01, -0.04, 0.2]) * (arm > 0) + random.normal(0, spread, n)
                values = np.where(random.random(n) < absent, np.nan, KINDS[kind](random, logs, level))
                rows += [
                    Row(f"a{arm}", f"x{x}", f"y{y}", str(block), float(value), float(np.exp(random.normal())))
                    for block, value in enumerate(values, start=1)
                    if random.random() >= lost
                ]
    return Drawn(kind=kind, rows=tuple(rows), paired=bool(random.random() < PAIRED), baseline="a0")


def rows_of(text: str) -> foreign.Rows:
    return foreign.gather(foreign.sources(["-"], names=None, standard_input=io.BytesIO(text.encode())))


def analysed(drawn: Drawn) -> dict[Key, Comparison]:
    """Comparisons of the primary metric.

    Raises:
        InputError: as `fairtrial analyse` refuses it.
    """
    question = foreign.Question(
        values=drawn.values,
        arm="arm",
        by=("x", "y"),
        block="block" if drawn.paired else None,
        baseline=drawn.baseline,
        better=(drawn.better,),
    )
    analysis = analyse_table(*foreign.ask(rows_of(drawn.csv), question))
    return {
        (cell.levels["x"], cell.levels["y"], each.arm): each
        for cell in analysis.cells
        for each in cell.comparisons[drawn.values[0]]
    }


def by_t(found: Comparison) -> float:
    """P before exact tests were held against it."""
    return found.p if found.p_by_t is None else found.p_by_t


def figures(found: Comparison) -> Figures:
    """All that is no name."""
    welch, rank, spreads = found.welch, found.rank, found.spreads
    return {
        **_interval("ratio", found.ratio),
        **_interval("difference", found.difference),
        **_interval("mean", found.mean),
        **_interval("rank shift", rank.shift if rank else None),
        "t": welch.t if welch else None,
        "Welch's p": welch.p if welch else None,
        "p": found.p,
        "t's p": by_t(found),
        "adjusted p": found.p_adjusted,
        "p of equivalence": found.p_equivalence,
        "adjusted p of equivalence": found.p_equivalence_adjusted,
        "rank p": rank.p if rank else None,
        "ratio of spreads": spreads.ratio if spreads else None,
        "p of spreads": spreads.p if spreads else None,
        "n": found.n,
        "method": found.method,
        "smallest effect": found.smallest_effect,
        "verdict": found.verdict,
        "estimand": found.estimand,
    }


def _interval(name: str, of: Interval | None) -> Figures:
    ends = (None, None, None) if of is None else (of.estimate, of.low, of.high)
    return {f"{name}{end}": value for end, value in zip(("", ", low", ", high"), ends, strict=True)}


def unlike(before: Figures, after: Figures) -> list[str]:
    """Figures that differ; a verdict may where rounding decides it."""
    edge = any(
        isinstance(p := before.get(name), float) and math.isclose(p, LEVEL, rel_tol=RELATIVE)
        for name in ("adjusted p", "adjusted p of equivalence")
    )
    return [
        f"{name}: {before[name]} became {after[name]}"
        for name in before
        if not _like(before[name], after[name]) and not (edge and name in {"verdict", "estimand"})
    ]


def _like(first: float | str | None, second: float | str | None) -> bool:
    if isinstance(first, str) or isinstance(second, str) or first is None or second is None:
        return first == second
    return math.isclose(first, second, rel_tol=RELATIVE, abs_tol=ABSOLUTE * (abs(first) < 1))


def times(of: Figures, factor: float) -> Figures:
    """The same in another unit."""
    in_units = ("difference",) if of["ratio"] is not None else ("difference", "mean", "rank shift")
    return {
        name: value * factor if isinstance(value, float) and name.partition(",")[0] in in_units else value
        for name, value in of.items()
    }


def mirrored(of: Figures) -> Figures:
    """The same with the arms exchanged."""
    turned = dict(of)
    logs = of["ratio"] is not None
    for name in ("ratio", "difference", "mean", "rank shift"):
        inverted = logs and name != "difference"
        for end, other in (("", ""), (", low", ", high"), (", high", ", low")):
            value = of[f"{name}{other}"]
            turned[f"{name}{end}"] = (1 / value if inverted else -value) if isinstance(value, float) else value
    if isinstance(ratio := of["ratio of spreads"], float):
        turned["ratio of spreads"] = 1 / ratio if ratio else math.inf
    if isinstance(t := of["t"], float):
        turned["t"] = -t
    turned["verdict"] = OPPOSITE.get(str(of["verdict"]), of["verdict"])
    return turned


def _figures(of: Before) -> dict[Key, Figures]:
    return {key: figures(found) for key, found in of.items()}


def _only(of: Mapping[Key, Figures], names: Sequence[str]) -> dict[Key, Figures]:
    return {key: {name: found[name] for name in names} for key, found in of.items()}


def _changed(expected: Mapping[Key, Figures], drawn: Drawn) -> Iterator[str]:
    """What is not as expected, comparison by comparison."""
    found = _figures(analysed(drawn))
    if expected.keys() != found.keys():
        yield f"comparisons {sorted(expected)} became {sorted(found)}"
        return
    for key, own in expected.items():
        if away := unlike(own, found[key]):
            yield f"{'+'.join(key)}: {'; '.join(away)}"


def _values(drawn: Drawn, change: Callable[[Row], float]) -> Drawn:
    return replace(drawn, rows=tuple(row._replace(v=change(row)) for row in drawn.rows))


def swapped(_random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str] | None:
    """Ratios are inverted, p stays, verdicts are mirrored; with a third arm there would be another family."""
    if len(drawn.arms) > 2:  # noqa: PLR2004
        return None
    (other,) = set(drawn.arms) - {drawn.baseline}
    expected = {(*key[:2], drawn.baseline): mirrored(figures(found)) for key, found in before.items()}
    return _changed(expected, replace(drawn, baseline=other))


def scaled(random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str]:
    """Values times a power of two, which changes no digit of them."""
    factor = 2.0 ** int(random.integers(-20, 21))
    expected = {key: times(figures(found), factor) for key, found in before.items()}
    if drawn.kind in ONE_RATIO:
        expected = _only(expected, BY_T)
    return _changed(expected, _values(drawn, lambda row: factor * row.v))


def reordered(random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str]:
    """The order of rows is time, which makes doubts and no figure."""
    rows = [drawn.rows[index] for index in random.permutation(len(drawn.rows))]
    return _changed(_figures(before), replace(drawn, rows=tuple(rows)))


def renamed(random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str]:
    """Conditions that a joined name would confuse, arms like numbers, blocks further apart or with words for names."""
    names = {"x0": "p+q", "x1": "p", "y0": "r", "y1": "q+r", "a0": "01", "a1": "1", "a2": "a, b"}
    words = random.integers(2) == 0
    rows = [
        row._replace(
            arm=names[row.arm],
            x=names[row.x],
            y=names[row.y],
            block=f"day {row.block}" if words else str(7 * int(row.block) - 40),
        )
        for row in drawn.rows
    ]
    expected = {(names[x], names[y], names[arm]): found for (x, y, arm), found in _figures(before).items()}
    return _changed(expected, replace(drawn, rows=tuple(rows), baseline=names[drawn.baseline]))


def turned(_random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str]:
    """Which direction is good decides the word of a verdict and nothing else."""
    expected = _figures(before)
    for found in expected.values():
        found["verdict"] = OPPOSITE.get(str(found["verdict"]), found["verdict"])
    return _changed(expected, replace(drawn, better="lower"))


def seconded(_random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str]:
    """A secondary metric is of another family."""
    return _changed(_figures(before), replace(drawn, values=("v", "w")))


def slowed(random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str] | None:
    """What multiplies all of one block is no arm's; differences and arms' own spreads do change."""
    if not drawn.paired or any(row.v <= 0 for row in drawn.rows):
        return None
    block, factor = str(random.choice([row.block for row in drawn.rows])), 2.0 ** int(random.integers(-3, 4))
    kept = BY_T if drawn.kind in ONE_RATIO else (*BY_T, "rank p")
    return _changed(
        _only(_figures(before), kept), _values(drawn, lambda row: row.v * (factor if row.block == block else 1))
    )


def enlarged(_random: np.random.Generator, drawn: Drawn, before: Before) -> Iterator[str]:
    """A cell in which nothing varies makes no claim easier, and none of more."""
    more = [Row(arm, CONSTANT, "y0", str(block), 100.0, 1.0) for arm in drawn.arms for block in range(1, 9)]
    after = analysed(replace(drawn, rows=(*drawn.rows, *more)))
    for key, found in before.items():
        was, now = found.verdict, after[key].verdict
        if now not in (was, "undecided") and not (was == "equivalent" and now in OPPOSITE):
            yield f"{'+'.join(key)}: {was} became {now}"
        if now == was and found.estimand == "typical" and after[key].estimand == "mean":
            yield f"{'+'.join(key)}: a claim of the typical trial became one of the mean"


PROPERTIES: dict[str, Callable[[np.random.Generator, Drawn, Before], Iterator[str] | None]] = {
    "arms swapped": swapped,
    "values scaled": scaled,
    "rows in another order": reordered,
    "names changed": renamed,
    "better turned": turned,
    "a secondary metric": seconded,
    "a block slowed": slowed,
    "a constant cell": enlarged,
}


def properties(random: np.random.Generator, runs: int) -> Iterator[Attacked]:
    """Every property on so many tables."""
    tables = [(drawn, analysed(drawn)) for drawn in (draw(random) for _ in range(runs))]
    for name, of in PROPERTIES.items():
        found = [(drawn, each) for drawn, before in tables if (each := of(random, drawn, before)) is not None]
        told = [f"{drawn.kind}, {len(drawn.arms)} arms: {wrong}" for drawn, every in found for wrong in every]
        yield Attacked(f"properties: {name}", len(found), tuple(told))


# Base R on the files themselves. The columns are those of `opinion`.
R = r"""
raised <- function(p, choices, exact) {
  if (p >= 0.05 || choices <= 1) return(p)
  w <- 1 - 1 / sqrt(choices)
  max(p, p^(1 - w) * exact()^w)
}
one <- function(rows, paired, size) {
  a <- rows$v[rows$arm == "a0"]
  b <- rows$v[rows$arm == "a1"]
  logs <- all(a > 0, na.rm = TRUE) && all(b > 0, na.rm = TRUE)
  welch <- t.test(b, a)
  if (paired) {
    both <- merge(rows[rows$arm == "a0", ], rows[rows$arm == "a1", ], by = "block")
    a <- both$v.x
    b <- both$v.y
    use <- !is.na(a) & !is.na(b)
    a <- a[use]
    b <- b[use]
  }
  a <- a[!is.na(a)]
  b <- b[!is.na(b)]
  if (logs) {
    a <- log(a)
    b <- log(b)
  }
  test <- t.test(b, a, paired = paired)
  side <- if (mean(b) > mean(a)) "greater" else "less"
  if (paired) {
    d <- b - a
    ranked <- wilcox.test(d, exact = TRUE)$p.value
    p <- raised(test$p.value, 0.05 / size * 2^(length(d) - 1), function() {
      signs <- as.matrix(expand.grid(rep(list(c(-1, 1)), length(d))))
      c(mean(abs(signs %*% d) >= abs(sum(d)) * (1 - 1e-12)),
        min(1, 2 * wilcox.test(d, alternative = side, exact = TRUE)$p.value))
    })
  } else {
    ranked <- wilcox.test(b, a, exact = TRUE)$p.value
    p <- raised(test$p.value, 0.05 / size * choose(length(a) + length(b), length(a)) / 2, function()
      min(1, 2 * wilcox.test(b, a, alternative = side, exact = TRUE)$p.value))
  }
  estimate <- c(mean(b) - mean(a), test$conf.int)
  c(if (logs) exp(estimate) else estimate, test$p.value, p, ranked, welch$statistic, welch$parameter, welch$p.value)
}
for (file in readLines(file.path(commandArgs(TRUE)[1], "files"))) {
  rows <- read.csv(file.path(commandArgs(TRUE)[1], file), colClasses = c(arm = "character", block = "character"))
  cells <- unique(rows[c("x", "y")])
  figures <- t(sapply(seq_len(nrow(cells)), function(i)
    one(rows[rows$x == cells$x[i] & rows$y == cells$y[i], ], startsWith(file, "paired"), nrow(cells))))
  write.table(cbind(file, cells, figures, p.adjust(figures[, 5], method = "holm")), row.names = FALSE,
    col.names = FALSE, sep = ",", quote = FALSE)
}
"""
COLUMNS = ("estimate", "low", "high", "t's p", "p", "Wilcoxon's p", "Welch's t", "df", "Welch's p", "Holm's p")


def opinion(found: Comparison) -> list[float | None]:
    """What R prints of the same comparison."""
    scale, welch, rank = found.difference if found.ratio.estimate is None else found.ratio, found.welch, found.rank
    if welch is None or rank is None:
        return [None] * len(COLUMNS)
    return [
        *(scale.estimate, scale.low, scale.high),
        *(by_t(found), found.p, rank.p, welch.t, welch.df, welch.p, found.p_adjusted),
    ]


def beside_r(random: np.random.Generator, runs: int) -> Iterator[Attacked]:
    """Two arms, values that do not tie: where they do R has no exact p."""
    tables: dict[str, tuple[Drawn, dict[Key, Comparison]]] = {}
    while len(tables) < runs:
        drawn = draw(random, kinds=tuple(CONTINUOUS), arms=2)
        found = analysed(drawn)
        if len(found) == len({(row.x, row.y) for row in drawn.rows}) and all(map(_enough, found.values())):
            tables[f"{'paired' if drawn.paired else 'shuffled'}-{len(tables)}.csv"] = drawn, found
    theirs = _r({name: drawn.csv for name, (drawn, _) in tables.items()})
    told, count = [], 0
    for name, (_, found) in tables.items():
        for key, each in found.items():
            expected, count = theirs.get((name, *key[:2]), []), count + 1
            ours = opinion(each)
            away = [
                f"{column} is {own}, R has {other}"
                for column, own, other in zip(COLUMNS, ours, expected or [math.nan] * len(ours), strict=True)
                if own is None or not math.isclose(own, other, rel_tol=AS_R)
            ]
            told += [f"{name} {'+'.join(key)}: {'; '.join(away)}"] if away else []
    yield Attacked(f"R beside: comparisons of {runs} files", count, tuple(told))


def _enough(found: Comparison) -> bool:
    """For R, which refuses what has no spread."""
    return found.n > 1 and found.welch is not None


def _r(files: Mapping[str, str]) -> dict[tuple[str, str, str], list[float]]:
    """Figures by file and cell, from one process: starting R takes longer than all its tests."""
    with TemporaryDirectory() as place:
        for name, text in {**files, "files": "\n".join(files) + "\n", "attack.r": R}.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        command = ["Rscript", "--vanilla", f"{place}/attack.r", place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Rscript ended with {done.returncode}: {done.stderr}")
    lines = csv.reader(done.stdout.splitlines())
    return {(file, x, y): [float(figure) for figure in rest] for file, x, y, *rest in lines}
