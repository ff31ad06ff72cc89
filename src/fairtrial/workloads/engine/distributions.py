"""How keys and other numbers of a range are drawn: sysbench's distributions, by the load engine."""

from __future__ import annotations

from typing import Literal, Protocol

from fairtrial.protocol import generated as wire

Distribution = Literal["uniform", "gaussian", "special", "pareto", "zipfian"]
Shape = (
    wire.UniformDistribution
    | wire.GaussianDistribution
    | wire.SpecialDistribution
    | wire.ParetoDistribution
    | wire.ZipfianDistribution
)


class DistributionParameters(Protocol):
    """A model that says what shapes each distribution."""

    @property
    def iterations(self) -> int:
        """Uniform draws behind one of `gaussian` and `special`."""

    @property
    def hot_percent(self) -> int:
        """Size of the hot part of `special`."""

    @property
    def hot_draws_percent(self) -> int:
        """Draws that go to it."""

    @property
    def pareto_h(self) -> float:
        """Share of the range that gets the rest of the draws."""

    @property
    def zipfian_exponent(self) -> float:
        """How steeply frequency falls with rank."""


def shape(kind: Distribution, shaped: DistributionParameters) -> Shape:
    """A distribution as the engine takes it, with its own parameters only."""
    match kind:
        case "uniform":
            return wire.UniformDistribution()
        case "gaussian":
            return wire.GaussianDistribution(iterations=shaped.iterations)
        case "special":
            return wire.SpecialDistribution(
                iterations=shaped.iterations,
                hot_percent=shaped.hot_percent,
                hot_draws_percent=shaped.hot_draws_percent,
            )
        case "pareto":
            return wire.ParetoDistribution(h=shaped.pareto_h)
        case "zipfian":
            return wire.ZipfianDistribution(exponent=shaped.zipfian_exponent)
