"""Which runs a list shows and in which order, as its address says. Pure, and loads no models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from fairtrial.serve.overview.run_summary import RunSummary

PAGE_ROWS: Final = 100
LONGEST: Final = 100  # characters of a word in an address
MOST_STUDIES: Final = 200  # in the form; others are found by text
NEWEST: Final = "-started"
DESCENDING: Final = "-"

# Of a run, by the word in the address. `changed` is either way.
VERDICTS: Final[Mapping[str, Collection[str]]] = {
    "worse": ("slower",),
    "better": ("faster",),
    "changed": ("slower", "faster"),
    "undecided": ("undecided",),
    "equivalent": ("equivalent",),
    "none": (),
}
_AT_REST: Final[Mapping[str, str]] = {"unfinished": "interrupted"}
STATES: Final = ("running", "interrupted", "not started", "damaged", "finished")

Value = tuple[int, ...] | str | float


@dataclass(frozen=True)
class ListedRun:
    """A run and what it does now."""

    run: RunSummary
    state: str

    @property
    def is_damaged(self) -> bool:
        """Whether it has no page."""
        return self.state == "damaged"


@dataclass(frozen=True)
class Column:
    """One column: its word in the address, its title, and what it is sorted by, given a run and its state.

    Keys are made for every run at every request: nothing that has to be collected again.
    """

    name: str
    title: str
    key: Callable[[RunSummary, str], Value | None]
    is_number: bool = False


COLUMNS: Final = (
    Column("run", "run", lambda run, _state: run.name.casefold()),
    Column("study", "study", lambda run, _state: f"{run.study.casefold()}\0{run.size}" if run.study else None),
    Column("started", "started", lambda run, _state: run.started or None),
    Column("state", "state", lambda _run, state: STATES.index(state)),
    Column(
        "trials",
        "trials",
        lambda run, _state: run.done + 1 / (1 + run.planned) if run.planned else None,
        is_number=True,
    ),
    Column("verdict", "verdict", lambda run, _state: run.severity if run.verdicts else None),
    Column("ratio", "ratio", lambda run, _state: run.ratio, is_number=True),
    Column("place", "place", lambda run, _state: run.places or None),
    Column("kernel", "kernel", lambda run, _state: run.kernels or None),
    Column("versions", "versions", lambda run, _state: run.versions or None),
)
_KEYS: Final = {column.name: column for column in COLUMNS}


@dataclass(frozen=True)
class Query:
    """What an address asks for; all that is usual is left out of it.

    Attributes:
        sort: a column's name, with `-` before it from the largest down.
        page: from 1.
    """

    text: str = ""
    study: str = ""
    verdict: str = ""
    state: str = ""
    sort: str = NEWEST
    page: int = 1

    @classmethod
    def parsed(cls, parameters: Mapping[str, str]) -> Query:
        """From an address; words that mean nothing are taken for none."""

        def word(name: str) -> str:
            return parameters.get(name, "").strip()[:LONGEST]

        page, verdict, state, sort = word("page"), word("verdict"), word("state"), word("sort")
        return cls(
            text=word("text"),
            study=word("study"),
            verdict=verdict if verdict in VERDICTS else "",
            state=state if state in STATES else "",
            sort=sort if sort.removeprefix(DESCENDING) in _KEYS else NEWEST,
            page=int(page) if page.isascii() and page.isdigit() and int(page) else 1,
        )

    def address(self, **changes: str | int) -> str:
        """The address of this list, or of one that differs; another page only where the rows are the same."""
        asked = replace(self, **({"page": 1} | changes))  # type: ignore[arg-type]
        usual = Query()
        said = {name: value for name, value in vars(asked).items() if value != vars(usual)[name]}
        return f"/?{urlencode(said)}" if said else "/"

    def sorted_by(self, column: str) -> str:
        """The address of the same rows sorted by a column; once more turns the order around."""
        return self.address(sort=f"{DESCENDING}{column}" if self.sort == column else column)

    def order(self, column: str) -> str:
        """How a column is sorted, in the words of `aria-sort`."""
        if self.sort.removeprefix(DESCENDING) != column:
            return "none"
        return "descending" if self.sort.startswith(DESCENDING) else "ascending"

    @property
    def narrows(self) -> bool:
        """Whether it leaves runs out."""
        return bool(self.text or self.study or self.verdict or self.state)

    def admits(self, run: RunSummary, state: str) -> bool:
        """Whether a run is one of those asked for."""
        if (self.study and run.study[:LONGEST].strip() != self.study) or (self.state and state != self.state):
            return False
        if self.verdict and not _has(run, self.verdict):
            return False
        return not self.text or all(word in run.text or word in state for word in self.text.casefold().split())


def _has(run: RunSummary, verdict: str) -> bool:
    wanted = VERDICTS[verdict]
    return bool(run.kinds.intersection(wanted)) if wanted else run.kinds <= {"none"}


@dataclass(frozen=True)
class RunsList:
    """One page of a list.

    Attributes:
        every: how many runs there are.
        matching: how many the query admits.
        pages: at least 1.
        studies: names, for the form.
    """

    query: Query
    rows: tuple[ListedRun, ...]
    every: int
    matching: int
    pages: int
    studies: tuple[str, ...]

    @property
    def first(self) -> int:
        """Number of the first row."""
        return (self.query.page - 1) * PAGE_ROWS + 1


def select(summaries: Sequence[RunSummary], query: Query, *, running: Collection[str]) -> RunsList:
    """The page of a list that a query asks for, the last one where there are fewer."""

    def state(run: RunSummary) -> str:
        return "running" if run.name in running else _AT_REST.get(run.state, run.state)

    found = [each for each in summaries if query.admits(each, state(each))]
    pages = max(1, -(-len(found) // PAGE_ROWS))
    query = replace(query, page=min(query.page, pages))
    start = (query.page - 1) * PAGE_ROWS
    rows = _sorted(found, query.sort, state=state)[start : start + PAGE_ROWS]
    studies = Counter(each.study for each in summaries if each.study).most_common(MOST_STUDIES)
    return RunsList(
        query=query,
        rows=tuple(ListedRun(each, state(each)) for each in rows),
        every=len(summaries),
        matching=len(found),
        pages=pages,
        studies=tuple(sorted(name for name, _count in studies)),
    )


def _sorted(found: Sequence[RunSummary], sort: str, *, state: Callable[[RunSummary], str]) -> list[RunSummary]:
    """By a column, the newest first among equals; what has no value there stands last, whichever the order."""
    column = _KEYS[sort.removeprefix(DESCENDING)]

    def key(run: RunSummary) -> Any:
        return column.key(run, state(run))

    newest = sorted(found, key=lambda run: run.started + run.name, reverse=True)
    having = [run for run in newest if key(run) is not None]
    having.sort(key=key, reverse=sort.startswith(DESCENDING))
    return having + [run for run in newest if key(run) is None]
