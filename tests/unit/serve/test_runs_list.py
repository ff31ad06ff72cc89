"""Which rows an address shows, and in which order."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from fairtrial.serve.overview.run_summary import RunSummary, VerdictCount
from fairtrial.serve.overview.runs_list import COLUMNS, PAGE_ROWS, Column, Query, RunsList, select

MINUTES = "2026-01-01T00:{:02d}:00Z"


def run(name: str, **facts: object) -> RunSummary:
    return RunSummary(**{"name": name, "study": "s", "state": "finished", "started": MINUTES.format(0), **facts})  # type: ignore[arg-type]


def verdicts(**counts: int) -> tuple[VerdictCount, ...]:
    return tuple(VerdictCount(kind, kind, count) for kind, count in counts.items())


RUNS = [
    run("worse", verdicts=verdicts(slower=1, faster=1), ratio=1.3, started=MINUTES.format(1), kernels="6.1"),
    run("better", verdicts=verdicts(faster=2), ratio=0.7, started=MINUTES.format(2), study="t", places="vm"),
    run("open", verdicts=verdicts(undecided=1), ratio=1.01, started=MINUTES.format(3), versions="mariadb 10.11"),
    run("same", verdicts=verdicts(equivalent=1), ratio=1.0, started=MINUTES.format(4), done=4, planned=4),
    run("said nothing", verdicts=verdicts(none=1), started=MINUTES.format(5), done=1, planned=9),
    run("breached", verdicts=verdicts(undecided=1), breached=1, started=MINUTES.format(6)),
    run("going", state="unfinished", started=MINUTES.format(7)),
    run("stopped", state="unfinished", started=MINUTES.format(8)),
    run("broken", state="damaged", reason="plan.json is missing", started="", study=""),
]


def shown(address: str) -> list[str]:
    return [each.run.name for each in listed(address).rows]


def listed(address: str, runs: list[RunSummary] = RUNS) -> RunsList:
    parameters = dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
    return select(runs, Query.parsed(parameters), running={"going"})


def test_the_newest_is_first_and_what_never_began_last() -> None:
    assert shown("/") == [each.name for each in reversed(RUNS[:-1])] + ["broken"]


@pytest.mark.parametrize(
    ("verdict", "names"),
    [
        ("worse", {"worse", "breached"}),
        ("better", {"worse", "better"}),
        ("changed", {"worse", "better", "breached"}),
        ("undecided", {"open", "breached"}),
        ("equivalent", {"same"}),
        ("none", {"said nothing", "going", "stopped", "broken"}),
        ("no such word", {each.name for each in RUNS}),
    ],
)
def test_verdicts_are_filtered(verdict: str, names: set[str]) -> None:
    assert set(shown(f"/?verdict={verdict}")) == names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=running", ["going"]),
        ("state=interrupted", ["stopped"]),
        ("state=damaged", ["broken"]),
        ("study=t", ["better"]),
        ("study=t&verdict=worse", []),
        ("text=MariaDB", ["open"]),
        ("text=missing", ["broken"]),
        ("text=6.1+wor", ["worse"]),
        ("text=running", ["going"]),
        ("text=vm+mariadb", []),
    ],
)
def test_states_studies_and_words_are_filtered(query: str, names: list[str]) -> None:
    assert shown(f"/?{query}") == names


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_every_column_sorts_both_ways_and_keeps_what_has_no_value_last(column: Column) -> None:
    up, down = (
        [column.key(each.run, each.state) for each in listed(f"/?sort={way}{column.name}").rows] for way in ("", "-")
    )
    having = [key for key in up if key is not None]
    assert having
    assert up == [*sorted(having), *[None] * (len(up) - len(having))]  # type: ignore[type-var]
    assert down == [*having[::-1], *[None] * (len(up) - len(having))]


def test_the_worst_verdicts_are_first() -> None:
    assert shown("/?sort=verdict")[:2] == ["worse", "better"]


def test_equals_keep_the_newest_first_whichever_way_they_are_sorted() -> None:
    finished = [name for name in shown("/") if name not in {"going", "stopped", "broken"}]
    assert [name for name in shown("/?sort=state") if name in finished] == finished
    assert [name for name in shown("/?sort=-state") if name in finished] == finished


def test_pages_have_a_hundred_rows_and_the_last_one_the_rest() -> None:
    many = [run(f"r{number:03d}", started=MINUTES.format(number % 60)) for number in range(250)]
    first, last, beyond = (listed(f"/?page={page}&sort=run", many) for page in (1, 3, 99))
    assert (len(first.rows), first.pages, first.matching) == (PAGE_ROWS, 3, 250)
    assert [each.run.name for each in last.rows] == [f"r{number:03d}" for number in range(200, 250)]
    assert (last.first, beyond.query.page) == (201, 3)


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "²"])
def test_a_page_that_is_no_number_is_the_first(page: str) -> None:
    assert Query.parsed({"page": page}).page == 1


def test_an_address_says_only_what_is_unusual_and_is_read_back() -> None:
    assert Query().address() == "/"
    query = Query(text="a&b=c", study="<s>", verdict="worse", state="running", sort="ratio", page=3)
    address = query.address(page=3)
    assert Query.parsed(dict(parse_qsl(urlsplit(address).query))) == query
    assert len(address) < 200
    assert "page" not in query.address(), "other rows begin on their first page"


def test_sorting_by_a_column_again_turns_it_around() -> None:
    assert Query(sort="ratio").sorted_by("ratio") == "/?sort=-ratio"
    assert Query(sort="-ratio").sorted_by("ratio") == "/?sort=ratio"
    assert Query().order("started") == "descending"
    assert Query(sort="ratio").order("ratio") == "ascending"
    assert Query(sort="ratio").order("started") == "none"
    assert Query().sorted_by("started") == "/?sort=started"
