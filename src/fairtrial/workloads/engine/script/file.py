"""What a script file holds: tables and rows to be made, parameters, transactions."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, model_validator

from fairtrial.study.tree.quantities import Share
from fairtrial.workloads.engine.distributions import Distribution

LARGEST = 2**63 - 1  # numbers are signed 64-bit integers
WIDEST = 2**53  # ranges are drawn through doubles, which hold integers up to here
LONGEST = 1 << 20  # longer text is a file, not a value
MOST_ROWS = 10**11  # more are a mistake, not a benchmark

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Parameter = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _told_apart(name: str) -> str:
    if name == "all":
        raise ValueError("a transaction cannot be named `all`, which stands for all of them together: rename it")
    return name


TransactionName = Annotated[Name, AfterValidator(_told_apart)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Ranged(_Part):
    """Numbers of a range, both ends included."""

    distribution: Distribution = Field("uniform", description="Distribution of the numbers.")
    iterations: int = Field(
        12, ge=1, le=1000, description="Number of uniform draws averaged into one draw of `gaussian` and `special`."
    )
    hot_percent: int = Field(1, ge=1, le=100, description="Size of the hot part of `special`, percent of the range.")
    hot_draws_percent: int = Field(
        75, ge=0, lt=100, description="Share of draws that hit the hot part of `special`, percent."
    )
    pareto_h: float = Field(
        0.2, gt=0, lt=1, description="Shape of `pareto`: 0.2 sends 80 % of the draws to 20 % of the range."
    )
    zipfian_exponent: float = Field(
        0.8, ge=0, description="Exponent of `zipfian`: how steeply frequency falls with rank."
    )


def _check_range(low: int, high: int) -> None:
    if low > high:
        raise ValueError("`low` is above `high`")
    if high - low >= WIDEST or not -LARGEST <= low <= high <= LARGEST:
        raise ValueError("the range is wider than 2^53 or exceeds 64 bits")


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
    digits: int = Field(2, ge=0, le=18, description="Number of decimal places.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for end in (self.low, self.high):
            if end.is_finite() and not -LARGEST <= end <= LARGEST:
                raise ValueError(f"{end} exceeds 64 bits")
            if not end.is_finite() or end.scaleb(self.digits) != end.scaleb(self.digits).to_integral_value():
                raise ValueError(f"{end} has more than {self.digits} decimal places (`digits`)")
        _check_range(self.units(self.low), self.units(self.high))
        return self

    def units(self, end: Decimal) -> int:
        """An end of the range without its point."""
        return int(end.scaleb(self.digits))


class TextDraw(_Part):
    """Random text."""

    type: Literal["text"]
    length: int | None = Field(None, ge=0, le=LONGEST, description="Length of every text, in letters.")
    shortest: int | None = Field(None, ge=0, le=LONGEST, description="Length of the shortest text, in letters.")
    longest: int | None = Field(None, ge=0, le=LONGEST, description="Length of the longest text, in letters.")
    letters: Literal["alphanumeric", "digits"] = Field("alphanumeric", description="Set of letters to draw from.")

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        ends = (self.shortest, self.longest)
        if (self.length is None) == (ends == (None, None)) or (self.length is None and None in ends):
            raise ValueError("expected either `length`, or `shortest` and `longest`")
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
    values: list[Constant] = Field(min_length=1, description="Values to draw from: whole numbers, texts, `null`.")
    weights: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(
        None, description="Relative frequency of each value (default: all equal)."
    )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.weights is not None and len(self.weights) != len(self.values):
            raise ValueError(
                f"expected one weight per value, found {len(self.values)} `values` and {len(self.weights)} `weights`"
            )
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

    sql: str = Field(description="SQL of the statement; `:name` stands for a parameter, or for a value taken before.")
    rows: int | None = Field(
        None,
        ge=0,
        description="Number of rows that the statement must return or change; otherwise the transaction fails.",
    )
    take: list[Parameter] = Field(
        default_factory=list, description="Names for the first columns of the first row, for use in later statements."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"sql": value} if isinstance(value, str) else value


def _or_text_alone(schema: dict[str, Any]) -> None:
    """For editors: a statement that needs no other key is given as its text."""
    schema["items"] = {"anyOf": [{"type": "string"}, schema["items"]]}


class Transaction(_Part):
    """One type of transaction."""

    weight: float = Field(1.0, gt=0, allow_inf_nan=False, description="Relative frequency of the transaction.")
    transaction: Literal["read_write", "read_only", "none"] = Field(
        "read_write",
        description="Grouping of the statements: one transaction, one read-only transaction, or each statement alone.",
    )
    rollback: Share = Field(
        0.0, le=1, description="Share of transactions that end with `ROLLBACK`, drawn before they begin."
    )
    parameters: dict[Parameter, Draw] = Field(
        default_factory=dict, description="Parameters of this transaction, by name."
    )
    statements: list[Statement] = Field(
        min_length=1, description="Statements of the transaction, in order.", json_schema_extra=_or_text_alone
    )

    @model_validator(mode="after")
    def _something_to_roll_back(self) -> Self:
        if self.rollback and self.transaction == "none":
            raise ValueError("statements outside a transaction cannot be rolled back: leave `rollback` out")
        return self


class Fill(_Part):
    """Rows of one table."""

    rows: int = Field(ge=1, le=MOST_ROWS, description="Number of rows.")
    columns: dict[Identifier, Draw] = Field(min_length=1, description="Generator of each column's values.")


class Setup(_Part):
    """Tables and rows, made once when data are prepared."""

    create: list[str] = Field(
        default_factory=list, description="Statements run before any row is inserted, such as `CREATE TABLE`."
    )
    fill: dict[Identifier, Fill] = Field(default_factory=dict, description="Rows to generate by table, in parallel.")
    finish: list[str] = Field(
        default_factory=list,
        description="Statements run after the rows are inserted: indexes, rows computed from rows.",
    )


class ScriptFile(_Part):
    """A user's own transactions."""

    setup: Setup | None = Field(
        None, description="Tables and rows, created once when data are prepared (default: none)."
    )
    parameters: dict[Parameter, Draw] = Field(
        default_factory=dict,
        description="Parameters of all transactions, by name; a transaction's own take precedence.",
    )
    transactions: dict[TransactionName, Transaction] = Field(
        min_length=1, description="Types of transactions, by name."
    )
    checks: dict[Name, str] = Field(
        default_factory=dict,
        description="Invariants by name: queries that return a row for each violation, run after every trial.",
    )
