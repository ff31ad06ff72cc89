"""Designs that screen many options: their matrices, what they cannot tell apart, and their trials. Pure.

Every row is one trial and a block of its own, so that a row that is lost is run again alone: the matrix must be whole,
and a whole new one would cost as many trials as all the others. A replicate of the matrix is a round, whose rows run in
random order; a row that is run again joins the end of its own round.

Owns the choice of a matrix. `pydoe` makes it; it takes a second to load, so only a screening loads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from fairtrial.plan import ordering
from fairtrial.plan.shuffling import block_seed
from fairtrial.record.models import Design, Plan, PlannedTrial
from fairtrial.record.screening import Aliasing, Screening

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study import Study

    Matrix = NDArray[np.int64]

ONLY_CELL: Final = "all"
USUAL_RESOLUTION: Final = 4
NEXT_SIZES: Final = 16  # from a number of factors without a matrix up to one that has a matrix
REPEATED_SHARE: Final = 4  # one row in so many may be lost before something is wrong with the study
_MIXED: Final = 1e-9


def screening(study: Study) -> Screening:
    """The matrix that a study's design asks for; the study has one."""
    trials, names = study.trials, [factor.name for factor in study.factors]
    fold = bool(trials.fold)
    codes = matrix(trials.design or "", len(names), resolution=trials.resolution or USUAL_RESOLUTION, fold=fold)
    digits = len(str(len(codes)))
    aliases = aliasing(codes, names)
    mixed = any(each.whole or each.partial for each in aliases.values())
    return Screening(
        design=trials.design or "fractional",
        options={factor.name: list(factor.level_names) for factor in study.factors},
        rows={f"r{number:0{digits}d}": row for number, row in enumerate(codes.tolist(), start=1)},
        resolution=3 if mixed else 4 if _pairs_mixed(codes) else 5,
        folded=fold or trials.design == "definitive",
        generators=generators(codes, names) if trials.design == "fractional" else [],
        aliases=aliases,
    )


def matrix(design: str, options: int, *, resolution: int = USUAL_RESOLUTION, fold: bool = False) -> Matrix:
    """Codes of levels by row and option: -1 is low, 1 high, 0 the middle of three.

    A Plackett-Burman matrix has the row of all low levels, which is the baseline of most studies.

    Raises:
        ValueError: there is no such matrix.
    """
    import numpy as np  # noqa: PLC0415 - see the module's docstring
    import pydoe  # noqa: PLC0415

    if design == "definitive":
        made = pydoe.definitive_screening_design(options)
    elif design == "fractional":
        made = pydoe.fracfact_by_res(options, resolution)
    else:
        made = -_plackett_burman(options)
        made = pydoe.fold(made) if fold else made
    return np.asarray(np.rint(made), dtype=np.int64)


def _plackett_burman(options: int) -> NDArray[np.float64]:
    """The smallest that pydoe has, without the columns that are too many: it has none of 28, 36, 44, 52 or 56 rows."""
    import pydoe  # noqa: PLC0415 - as above

    for columns in range(options, options + NEXT_SIZES):
        try:
            made: NDArray[np.float64] = pydoe.pbdesign(columns)[:, :options]
        except ValueError:
            continue
        return made
    raise ValueError(f"expected a Plackett-Burman matrix for {options} options, found none")


def aliasing(codes: Matrix, names: Sequence[str]) -> dict[str, Aliasing]:
    """What each main effect holds of interactions of two other options."""
    pairs, products = _pairs(codes)
    # Least squares gives a main effect plus this share of every interaction; columns are orthogonal.
    shares = codes.T @ products / (codes**2).sum(axis=0)[:, None]
    found = {}
    for index, name in enumerate(names):
        others = [at for at, pair in enumerate(pairs) if index not in pair]
        whole = [at for at in others if abs(abs(shares[index, at]) - 1) < _MIXED]
        partial = [abs(float(shares[index, at])) for at in others if _MIXED < abs(shares[index, at]) < 1 - _MIXED]
        found[name] = Aliasing(
            whole=[f"{'-' if shares[index, at] < 0 else ''}{_product(names, pairs[at])}" for at in whole],
            partial=len(partial),
            share=max(partial, default=0.0),
        )
    return found


def _pairs(codes: Matrix) -> tuple[list[tuple[int, int]], Matrix]:
    import numpy as np  # noqa: PLC0415 - as above

    pairs = list(combinations(range(codes.shape[1]), 2))
    return pairs, np.stack([codes[:, first] * codes[:, second] for first, second in pairs], axis=1)


def _pairs_mixed(codes: Matrix) -> bool:
    """Whether interactions of two options are mixed with each other."""
    import numpy as np  # noqa: PLC0415 - as above

    products = _pairs(codes)[1]
    centred = products - products.mean(axis=0)
    together = centred.T @ centred
    return bool(np.abs(together - np.diag(np.diag(together))).max() > _MIXED)


def generators(codes: Matrix, names: Sequence[str]) -> list[str]:
    """Of a fraction: every column that is a product of the base columns, which come first."""
    base = (len(codes) - 1).bit_length()
    words = [word for size in range(2, base + 1) for word in combinations(range(base), size)]
    found = []
    for index in range(base, codes.shape[1]):
        word = next(word for word in words if (codes[:, list(word)].prod(axis=1) == codes[:, index]).all())
        found.append(f"{names[index]} = {_product(names, word)}")
    return found


def _product(names: Sequence[str], word: Sequence[int]) -> str:
    return " × ".join(names[index] for index in word)


def trials(design: Design, rows: Sequence[str]) -> list[PlannedTrial]:
    """Every row of every replicate, rows in random order within a replicate."""
    slots = ordering.slots(design, cells=[ONLY_CELL], arms=rows)
    return [_planned(slot, seed=design.seed, position=position) for position, slot in enumerate(slots)]


def again(plan: Plan, lost: PlannedTrial, *, block: int, position: int) -> list[PlannedTrial]:
    """A row that was lost, once more, in its own replicate."""
    slot = ordering.Slot(lost.cell, lost.arm, lost.round, lost.round)
    return [_planned(slot, seed=plan.design.seed, position=position, block=block)]


def _planned(slot: ordering.Slot, *, seed: int, position: int, block: int | None = None) -> PlannedTrial:
    """A row is a block of its own; all rows of a replicate share the load's seed."""
    own = slot._replace(block=position + 1 if block is None else block)
    shared = block_seed(seed, slot.cell, slot.round)
    return ordering.planned(own, seed=seed, position=position).model_copy(update={"seed": shared})


def sentences(of: Screening) -> Iterator[str]:
    """What a matrix cannot tell apart, in words."""
    rows, options = len(of.rows), len(of.options)
    kind = {3: "III", 4: "IV", 5: "V"}[of.resolution]
    said = {
        3: "main effects are mixed with interactions of two options",
        4: "main effects are free of interactions of two options, which are mixed with each other",
        5: "main effects and interactions of two options are free of each other",
    }[of.resolution]
    yield f"{options} options in {rows} rows{' (folded)' if of.folded else ''}, resolution {kind}: {said}."
    yield from _mixed(of.aliases)
    if of.generators:
        yield f"Generators: {'; '.join(of.generators)}."


def _mixed(aliases: Mapping[str, Aliasing]) -> Iterator[str]:
    for option, each in aliases.items():
        if each.whole:
            yield f"The effect of {option} cannot be told from {', '.join(each.whole)}."
    partial = [each for each in aliases.values() if each.partial]
    if partial:
        most, share = max(each.partial for each in partial), max(each.share for each in partial)
        yield (
            f"Every main effect holds up to {share * 100:.0f} % of each of {most} interactions of two other options: a "
            "strong interaction looks like several weak effects."
        )
