"""Small drawings of cells as numbers for a template: every trial a dot, every look an interval. Draws no live data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.live.looks import CellLooks, Look
from fairtrial.live.slots import Slot
from fairtrial.report import numbers

WIDTH: Final = 640.0
HEIGHT: Final = 150.0
LEFT: Final = 64.0  # for the labels of the axis
MARGIN: Final = 10.0
TICKS: Final = 4
ROOM: Final = 0.08  # of the range, above and below
STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Dot:
    """A trial: where it is drawn, what it says, and the number that its address has."""

    x: float
    y: float
    arm: int
    title: str
    number: int
    used: bool


@dataclass(frozen=True)
class Tick:
    """A line across with its label."""

    y: float
    label: str


@dataclass(frozen=True)
class Bar:
    """A look: the estimate between the ends of its interval, if it has one."""

    x: float
    y: float
    low: float | None
    high: float | None
    title: str


@dataclass(frozen=True)
class Drawing:
    """What a template draws, all in units of a box of `WIDTH` × `HEIGHT`."""

    label: str
    ticks: tuple[Tick, ...]
    dots: tuple[Dot, ...] = ()
    bars: tuple[Bar, ...] = ()
    one: float | None = None
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN), 1)


def _axis(values: Iterable[float]) -> _Axis:
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = (high - low) * ROOM or abs(high) * ROOM or 1.0
    return _Axis(low - room, high + room)


def _ticks(axis: _Axis, label: numbers.Scale | None = None) -> tuple[Tick, ...]:
    """Round numbers inside the axis."""
    rough = (axis.high - axis.low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in STEPS if power * each >= rough)
    first = math.ceil(axis.low / step)
    values = [step * number for number in range(first, math.floor(axis.high / step) + 1)]
    decimals = max(0, -math.floor(math.log10(step)) + (0 if step / power in (1.0, 2.0, 5.0, 10.0) else 1))
    return tuple(Tick(axis.y(v), f"{v:.{decimals}f}" if label is None else label.value(v)) for v in values)


def _x(position: float, count: int) -> float:
    return round(LEFT + MARGIN + (WIDTH - LEFT - 2 * MARGIN) * (position + 0.5) / max(1, count), 1)


def trials(label: str, shown: Sequence[tuple[Slot, float]], *, arms: Sequence[str], scale: numbers.Scale) -> Drawing:
    """A metric of a cell's trials, in the order of blocks, arms beside each other."""
    placed = [(slot, value) for slot, value in shown if math.isfinite(value)]
    axis = _axis(value for _, value in placed)
    blocks = {block: index for index, block in enumerate(sorted({slot.trial.block for slot, _ in placed}))}
    dots = []
    for slot, value in placed:
        arm = arms.index(slot.trial.arm)
        aside = (arm - (len(arms) - 1) / 2) * 0.3
        said = f"block {slot.trial.block}, {slot.trial.arm}: {scale.value(value)} {scale.unit}"
        is_used = slot.fate == "valid"
        dots.append(
            Dot(
                x=_x(blocks[slot.trial.block] + aside, len(blocks)),
                y=axis.y(value),
                arm=arm,
                title=said if is_used else f"{said}, not used",
                number=slot.number,
                used=is_used,
            )
        )
    return Drawing(label=label, ticks=_ticks(axis, scale) if dots else (), dots=tuple(dots))


def looks(of: CellLooks, *, label: str) -> Drawing:
    """The ratio after every block, with its interval."""
    seen = [end for look in of.looks for end in (look.ratio, look.low, look.high) if end is not None]
    # The first intervals reach far beyond all others: of few blocks nobody knows the spread.
    bound = max((abs(math.log(look.high or look.ratio)) for look in of.looks[2:]), default=math.inf)
    axis = _axis([1.0, *(value for value in seen if abs(math.log(value)) <= 2 * bound or value == 1.0)])
    bars = tuple(_bar(look, axis, x=_x(index, len(of.looks))) for index, look in enumerate(of.looks))
    return Drawing(label=label, ticks=_ticks(axis), bars=bars, one=axis.y(1.0))


def _bar(look: Look, axis: _Axis, *, x: float) -> Bar:
    def inside(value: float | None) -> float | None:
        return None if value is None else min(HEIGHT - 2, max(2.0, axis.y(value)))

    ratio, interval = numbers.ratio_and_interval(look.ratio, look.low, look.high)
    return Bar(
        x=x,
        y=min(HEIGHT - 2, max(2.0, axis.y(look.ratio))),
        low=inside(look.low),
        high=inside(look.high),
        title=f"after {look.blocks} blocks: {ratio}, interval {interval}",
    )
