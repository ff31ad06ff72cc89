"""What a script file holds: tables and rows to be made, parameters, transactions."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, model_validator

from fairtrial.study.tree.quantities import Share
from fairtrial.workloads.engine.distributions import Distribution

LARGEST = 2**63 - 1  # numbers are signed 64-bit integers
WIDEST = 2**53  # ranges are drawn through doubles, which hold integers up to here
LONGEST = 1 << 20  # longer text is a file, not a value
MOST_ROWS = 10**11  # more are a mistake, not a benchmark

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Parameter = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Ranged(_Part):
    """Numbers of a range, both ends included."""

    distribution: Distribution = Field("uniform", description="How often each number is drawn.")
    iterations: int = Field(12, ge=1, le=1000, description="Uniform draws behind one of `gaussian` and `special`.")
    hot_percent: int = Field(1, ge=1, le=100, description="Size of the hot part of `special`, percent of the range.")
    hot_draws_percent: int = Field(75, ge=0, lt=100, description="Draws that go to it, percent.")
    pareto_h: float = Field(
        0.2, gt=0, lt=1, description="`pareto`: this share of the range gets the rest of the draws."
    )
    zipfian_exponent: float = Field(0.8, ge=0, description="`zipfian`: how steeply frequency falls with rank.")


def _check_range(low: int, high: int) -> None:
    if low > high:
        raise ValueError("`low` is above `high`")
    if high - low >= WIDEST or not -LARGEST <= low <= high <= LARGEST:
        raise ValueError("the range is wider than 2^53, or leaves 64 bits")


class IntegerDraw(_Ranged):
    """A whole number."""

    type: Literal["integer"]
    low: int = Field(description="Lowest.")
    high: int = Field(description="Highest.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _check_range(self.low, self.high)
        return self


class DecimalDraw(_Ranged):
    """An exact decimal."""

    type: Literal["decimal"]
    low: Decimal = Field(description="Lowest.")
    high: Decimal = Field(description="Highest.")
    digits: int = Field(2, ge=0, le=18, description="Digits behind the point.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for end in (self.low, self.high):
            if not end.is_finite() or end.scaleb(self.digits) != end.scaleb(self.digits).to_integral_value():
                raise ValueError(f"{end} has more than {self.digits} `digits` behind its point")
        _check_range(self.units(self.low), self.units(self.high))
        return self

    def units(self, end: Decimal) -> int:
        """An end of the range without its point."""
        return int(end.scaleb(self.digits))


class TextDraw(_Part):
    """Random text."""

    type: Literal["text"]
    length: int | None = Field(None, ge=0, le=LONGEST, description="Letters, where all are equally long.")
    shortest: int | None = Field(None, ge=0, le=LONGEST, description="Fewest letters, where they are not.")
    longest: int | None = Field(None, ge=0, le=LONGEST, description="Most letters.")
    letters: Literal["alphanumeric", "digits"] = Field("alphanumeric", description="Which letters.")

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        ends = (self.shortest, self.longest)
        if (self.length is None) == (ends == (None, None)) or (self.length is None and None in ends):
            raise ValueError("either `length`, or `shortest` and `longest`")
        if self.bounds[0] > self.bounds[1]:
            raise ValueError("`shortest` is above `longest`")
        return self

    @property
    def bounds(self) -> tuple[int, int]:
        """Fewest and most letters."""
        if self.length is not None:
            return self.length, self.length
        return self.shortest or 0, self.longest or 0


Constant = StrictInt | StrictStr | None


class ChoiceDraw(_Part):
    """One of some values."""

    type: Literal["choice"]
    values: list[Constant] = Field(min_length=1, description="Whole numbers, texts, `null`.")
    weights: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(
        None, description="How often each is drawn, relative to the others; all alike if left out."
    )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.weights is not None and len(self.weights) != len(self.values):
            raise ValueError(f"{len(self.values)} `values`, but {len(self.weights)} `weights`")
        if any(isinstance(value, int) and abs(value) > LARGEST for value in self.values):
            raise ValueError("numbers are signed 64-bit integers")
        return self


class SequenceDraw(_Part):
    """The next number: never the same twice in a drive, whoever draws; of a table's rows, 1, 2, 3."""

    type: Literal["sequence"]
    first: int = Field(1, ge=-LARGEST, le=LARGEST, description="First number.")


Draw = Annotated[
    IntegerDraw | DecimalDraw | TextDraw | ChoiceDraw | SequenceDraw,
    Field(discriminator="type"),
]


class Statement(_Part):
    """A statement of a transaction; one that needs no other key is given as its text alone."""

    sql: str = Field(description="Its text; `:name` stands for a parameter, or for a value taken before.")
    rows: int | None = Field(
        None, ge=0, description="Rows it must give, or touch; the transaction fails if there are others."
    )
    take: list[Parameter] = Field(
        default_factory=list, description="Names for the first columns of its first row, for the statements after it."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"sql": given} if isinstance(given, str) else given


def _or_text_alone(schema: dict[str, Any]) -> None:
    """For editors: a statement that needs no other key is given as its text."""
    schema["items"] = {"anyOf": [{"type": "string"}, schema["items"]]}


class Transaction(_Part):
    """One type of transaction."""

    weight: float = Field(1.0, gt=0, allow_inf_nan=False, description="How often it is drawn, relative to the others.")
    transaction: Literal["read_write", "read_only", "none"] = Field(
        "read_write", description="How its statements begin: as one transaction, as one that only reads, or each alone."
    )
    rollback: Share = Field(0.0, le=1, description="Share that ends with `ROLLBACK`, drawn before it begins.")
    parameters: dict[Parameter, Draw] = Field(default_factory=dict, description="Its own parameters by name.")
    statements: list[Statement] = Field(
        min_length=1, description="What it does, in order.", json_schema_extra=_or_text_alone
    )

    @model_validator(mode="after")
    def _something_to_roll_back(self) -> Self:
        if self.rollback and self.transaction == "none":
            raise ValueError("statements that are each alone cannot be rolled back: leave `rollback` out")
        return self


class Fill(_Part):
    """Rows of one table."""

    rows: int = Field(ge=1, le=MOST_ROWS, description="How many.")
    columns: dict[Identifier, Draw] = Field(min_length=1, description="How each column's values are drawn.")


class Setup(_Part):
    """Tables and rows, made once when data are prepared."""

    create: list[str] = Field(default_factory=list, description="Statements before any row: tables.")
    fill: dict[Identifier, Fill] = Field(default_factory=dict, description="Rows by table, made in parallel.")
    finish: list[str] = Field(
        default_factory=list, description="Statements after the rows: indexes, rows computed from rows."
    )


class Script(_Part):
    """A user's own transactions."""

    setup: Setup | None = Field(
        None, description="Tables and rows, made once when data are prepared; without it there are none."
    )
    parameters: dict[Parameter, Draw] = Field(
        default_factory=dict, description="Parameters of all transactions by name; a transaction's own hide them."
    )
    transactions: dict[Name, Transaction] = Field(min_length=1, description="Types of transactions by name.")
    checks: dict[Name, str] = Field(
        default_factory=dict,
        description="What is always true, by name: queries that give a row for each violation, run after every trial.",
    )
