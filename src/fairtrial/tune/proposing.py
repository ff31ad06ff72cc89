"""Optuna, told what blocks said and asked for the next values: tree-structured Parzen estimators. Pure.

A proposal depends on what was told so far, the seed and its number, and on nothing else: a search that was killed goes
on as it would have gone on.

Source: Bergstra et al. (2011), Watanabe (2023); guardrails as constraints: `optuna.trial.Trial.set_constraint`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fairtrial.errors import PlaceError
from fairtrial.plan.shuffling import digest
from fairtrial.study.tuning import TunedOption, Value

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

SEED_BYTES: Final = 4
STARTUP_SHARE: Final = 4  # one proposal in so many is drawn at random before the model is asked
FEWEST_STARTUP: Final = 5
MODELLED_TRIES: Final = 5  # for values that are not the default's; then they are drawn at random
TRIES: Final = 100
FAILED: Final = 10.0  # violation of a proposal that failed: worse than any guardrail's


@dataclass(frozen=True)
class Observation:
    """What one block said of values; `gain` is None where it failed."""

    values: Mapping[str, Value]
    gain: float | None
    excess: Mapping[str, float] = field(default_factory=dict)


def require() -> str:
    """Optuna's version.

    Raises:
        PlaceError: it is not installed.
    """
    try:
        import optuna  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise PlaceError(
            f"tuning needs the package {error.name}", hint="install it with: pip install 'fairtrial[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return str(optuna.__version__)


@dataclass(frozen=True)
class Proposer:
    """What a search proposes.

    Attributes:
        options: by name.
        default: what the default trial says of them; of some perhaps nothing.
        seed: of the search.
        proposals: how many there will be.
    """

    options: Mapping[str, TunedOption]
    default: Mapping[str, Value]
    seed: int
    proposals: int

    def propose(self, history: Sequence[Observation]) -> dict[str, Value]:
        """The values after these observations; never the default's own."""
        import optuna  # noqa: PLC0415 - see `require`

        told = [each for each in (self._known_default(), *history) if each is not None]
        worst = min((each.gain for each in told if each.gain is not None), default=0.0)
        frozen = [trial for each in told if (trial := self._frozen(each, worst=worst)) is not None]
        values: dict[str, Value] = {}
        for attempt in range(TRIES):
            study = optuna.create_study(direction="maximize", sampler=self.sampler(len(history), attempt))
            study.add_trials(frozen)
            drawn = study.ask(self.distributions).params
            values = {name: self._value(name, drawn[name]) for name in self.options}
            if values != self.default:
                break
        return values

    def sampler(self, number: int, attempt: int = 0) -> BaseSampler:
        """Optuna's sampler after so many observations: its random numbers are its own."""
        from optuna.samplers import RandomSampler, TPESampler  # noqa: PLC0415 - see `require`

        seed = int.from_bytes(digest("propose", self.seed, number, attempt)[:SEED_BYTES], "big")
        if attempt >= MODELLED_TRIES:
            return RandomSampler(seed=seed)
        startup = max(FEWEST_STARTUP, self.proposals // STARTUP_SHARE)
        return TPESampler(seed=seed, n_startup_trials=startup, multivariate=True)

    def _known_default(self) -> Observation | None:
        """The default against itself, of which no block needs to be run; None if it is no point of the space."""
        return Observation(self.default, gain=0.0) if self.default.keys() == self.options.keys() else None

    def _frozen(self, seen: Observation, *, worst: float) -> FrozenTrial | None:
        from optuna.trial import create_trial  # noqa: PLC0415 - see `require`

        params = {name: self._number(name, value) for name, value in seen.values.items()}
        if any(value is None for value in params.values()):
            return None  # the default, outside its range
        constraints = dict(seen.excess) if seen.gain is not None else {"failed": FAILED}
        return create_trial(
            params=params,
            distributions=self.distributions,
            value=worst if seen.gain is None else seen.gain,
            constraints=constraints,
        )

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The space, as Optuna has it."""
        from optuna import distributions as of  # noqa: PLC0415 - see `require`

        found: dict[str, BaseDistribution] = {}
        for name, option in self.options.items():
            log = option.scale == "log"
            if option.choices is not None:
                found[name] = of.CategoricalDistribution(option.choices)
            elif option.whole:
                low, high = map(int, option.ends)
                found[name] = of.IntDistribution(low, high, log=log)
            else:
                found[name] = of.FloatDistribution(*option.ends, log=log)
        return found

    def _value(self, name: str, drawn: Value) -> Value:
        option = self.options[name]
        return drawn if option.choices is not None else option.value(float(drawn))

    def _number(self, name: str, value: Value) -> Value | None:
        option = self.options[name]
        if option.choices is not None:
            return value if value in option.choices else None
        return option.number(value)
