"""`fairtrial studies beside` on the record of a real run, whose program prints what the publication measured."""

from __future__ import annotations

import re

from support.command_line import desk
from support.inference.tables import judged, only_comparison

from fairtrial.cli.reading import beside

# The seed is a block's: arms differ by a hundred, blocks by up to six.
STUDY = """\
    study: mglru-mariadb-tpcc
    workload:
      command:
        run: sh -c 'echo refaults=$((BASE + FAIRTRIAL_SEED % 7))'
        metrics:
          server_major_faults_per_transaction: {regex: 'refaults=([0-9]+)', unit: pages, kind: count, better: lower}
    factors:
      lru_gen:
        "off": {settings: {environment: {BASE: "200"}}}
        "on": {settings: {environment: {BASE: "100"}}}
      memory: {underutilizing: {}, overcommitting: {workload: {command: {timeout: 100s}}}}
      users: {high: {}}
    arm: lru_gen
    trials: {blocks: 6, seed: 5, stop: sequential, min_blocks: 5}
    metrics: {primary: server_major_faults_per_transaction}
"""


def fields(text: str, heading: str) -> dict[str, list[str]]:
    """The lines below a heading by what they are about; a column is at least two blanks away from the next."""
    below = text.split(f"{heading}\n{'=' * len(heading)}\n")[1].strip().split("\n\n")[0]
    rows = [re.split(r" {2,}", line) for line in below.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def test_a_run_stands_in_the_publication_s_tables() -> None:
    with desk() as here:
        here.fairtrial("run", here.study(STUDY))
        printed = here.fairtrial("studies", "beside", here.run).stdout
    found = fields(printed, "Table 1: published tpm, re-run server_major_faults_per_transaction")
    assert found["overcommitting, 600"][-2:] == ["better", "agree"]
    assert found["overcommitting, 600"][0] == "[19.7, 26.7]"
    assert found["underutilizing, 600"][-2:] == ["better", "only re-run"], "the publication shows nothing there"
    assert found["overcommitting, 400"][1:] == ["–", "–", "not run"]
    (counted,) = [line for line in printed.splitlines() if line.startswith("server_major_faults_per_transaction: ")]
    assert sum(int(number) for number in re.findall(r"[0-9]+", counted)) == 6 + 6, "every field of both tables"
    assert "linux-kernel mailing list" in printed


def test_equivalence_stands_beside_the_interval_of_its_own_tests() -> None:
    rows = [f"{arm},{block},{100 + (7 * block + 3 * (arm == 'b')) % 5 / 10}" for block in range(12) for arm in "ab"]
    table = "arm,block,tpm\n" + "\n".join(rows)
    asked = {"values": ("tpm",), "arm": "arm", "block": "block"}
    found = only_comparison(judged(table, **asked), "tpm")
    within = found.equivalence_interval
    assert found.verdict == "equivalent"
    assert within is not None
    assert beside.here(found) == f"[{100 * (within.low - 1):.1f}, {100 * (within.high - 1):.1f}] at 90 %"
    undecided = found.model_copy(update={"verdict": "undecided"})
    assert beside.here(undecided) == f"[{100 * (found.ratio.low - 1):.1f}, {100 * (found.ratio.high - 1):.1f}]"
    assert beside.here(None) == "–"


def test_a_run_too_short_for_a_verdict_is_counted_apart() -> None:
    with desk() as here:
        here.fairtrial(
            "run", here.study(STUDY.replace("blocks: 6, seed: 5, stop: sequential, min_blocks: 5", "blocks: 1"))
        )
        printed = here.fairtrial("studies", "beside", here.run).stdout
    assert len(re.findall(r"^overcommitting, 600 .* no verdict$", printed, re.MULTILINE)) == 1
    assert "_per_transaction: 8 not run, 4 no verdict\n" in printed


def test_a_study_that_re_runs_nothing_is_refused() -> None:
    with desk() as here:
        here.fairtrial("run", here.study(STUDY.replace("study: mglru-mariadb-tpcc", "study: my-own"), name="own.yaml"))
        done = here.fairtrial("studies", "beside", here.run, code=2)
    assert "`my-own` does not re-run a publication with raw data" in done.stderr
    assert done.stdout == ""
