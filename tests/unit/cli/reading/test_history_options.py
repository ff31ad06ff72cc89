"""What `history` and `gate` take from their options and from files beside the runs."""

from pathlib import Path

import pytest

from fairtrial.cli.reading import history
from fairtrial.errors import InputError

LEVELS = history.levels(alpha="5%", alarm_alpha="0.01", margin=None)


def known(paths: list[Path], named: Path | None = None) -> list[str]:
    return [each.run for each in history.options(paths, acknowledged=named, levels=LEVELS).known]


def written(path: Path, run: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"- {{run: {run}, because: looked at}}\n", encoding="utf-8")
    return path


def test_levels_are_shares_however_they_are_written() -> None:
    assert (LEVELS.alpha, LEVELS.alarm_alpha, LEVELS.margin) == (0.05, 0.01, None)
    assert history.levels(alpha="1 %", alarm_alpha="1%", margin="2%").margin == 0.02


@pytest.mark.parametrize("wrong", ["five", "0", "100%", "-1%", "1.5"])
def test_what_is_no_level_is_refused_by_the_options_name(wrong: str) -> None:
    with pytest.raises(InputError) as refused:
        history.levels(alpha="5%", alarm_alpha=wrong, margin=None)
    assert "--alarm-alpha" in str(refused.value)
    assert "1 %" in refused.value.hint


def test_acknowledgements_lie_in_the_directory_of_runs(tmp_path: Path) -> None:
    written(tmp_path / "runs" / "acknowledged.yaml", "r1")
    assert known([tmp_path / "runs"]) == ["r1"]


def test_acknowledgements_beside_a_run_and_beside_a_table_count(tmp_path: Path) -> None:
    written(tmp_path / "acknowledged.yaml", "r1")
    run = tmp_path / "run-1"
    run.mkdir()
    table = tmp_path / "nightly.csv"
    table.touch()
    assert known([run]) == ["r1"]
    assert known([table]) == ["r1"]
    assert known([run, table]) == ["r1"]  # once


def test_a_file_that_is_named_replaces_those_beside(tmp_path: Path) -> None:
    written(tmp_path / "acknowledged.yaml", "r1")
    named = written(tmp_path / "elsewhere" / "known.yaml", "r2")
    assert known([tmp_path], named) == ["r2"]


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert known([tmp_path]) == []


def test_tables_of_several_files_are_looked_at_together(tmp_path: Path) -> None:
    for name in ("one", "two"):
        rows = "".join(f"{i},{100 + i % 3}\n" for i in range(12))
        (tmp_path / f"{name}.csv").write_text("time,m\n" + rows, encoding="utf-8")
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    options = history.options(paths, acknowledged=None, levels=LEVELS)
    found = history.examined(paths, metrics=[], by="cell,arm", options=options)
    assert [each.series for each in found.series] == ["one", "two"]
    assert found.series[0].p_adjusted == found.series[1].p_adjusted


def test_a_metric_that_no_run_measures_is_answered_with_those_measured() -> None:
    kept = Path(__file__).parents[3] / "records"
    options = history.options([kept], acknowledged=None, levels=LEVELS)
    with pytest.raises(InputError) as refused:
        history.examined([kept], metrics=["throughput_tmp"], by="cell,arm", options=options)
    said = "--metric: no run measures throughput_tmp; expected one of `throughput_tpm`, `latency_ns_p95`, "
    assert str(refused.value).startswith(said)
    assert "did you mean `throughput_tpm`?" in str(refused.value)


def test_a_column_that_may_be_meant_as_numbers_is_named_where_it_is_taken_for_text(tmp_path: Path) -> None:
    table = tmp_path / "nightly.csv"
    rows = [f"{day},{day},{1000 if day < 5 else 500} tps,16 cores,note {day}" for day in range(1, 9)]
    table.write_text("\n".join(["time,errors,tps,machine,note", *rows]))
    found = history.examined(
        [table], metrics=[], by="cell", options=history.options([table], acknowledged=None, levels=LEVELS)
    )
    assert [each.metric for each in found.series] == ["errors"]
    assert list(found.left_out) == ["column tps of nightly.csv"]
    assert "`1000 tps` is text" in found.left_out["column tps of nightly.csv"]
