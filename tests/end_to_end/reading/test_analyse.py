"""`fairtrial analyse` as installed, on real data, beside R's own t.test and wilcox.test on the same file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import FAIRTRIAL, Desk, desk
from support.skips import require

DATA = Path(__file__).parents[3] / "studies" / "published" / "mglru-mariadb-tpcc" / "data.csv"
ASKED = (DATA, "--value", "tpm", "--arm", "kernel", "--by", "memory,virtual_users")
R = r"""
data <- read.csv(commandArgs(TRUE)[1], colClasses = c(kernel = "character"))
cells <- unique(data[c("memory", "virtual_users")])
p <- apply(cells, 1, function(cell) {
  rows <- data[data$memory == cell[["memory"]] & data$virtual_users == as.integer(cell[["virtual_users"]]), ]
  levels <- unique(data$kernel)
  base <- log(rows$tpm[rows$kernel == levels[1]])
  new <- log(rows$tpm[rows$kernel == levels[2]])
  test <- t.test(new, base)
  ranked <- wilcox.test(new, base, exact = TRUE)$p.value
  share <- 1 - 1 / sqrt(0.05 / nrow(cells) / 2 * choose(length(new) + length(base), length(new)))
  p <- test$p.value
  if (p < 0.05) p <- max(p, p^(1 - share) * ranked^share)
  c(exp(mean(new) - mean(base)), exp(test$conf.int), p)
})
adjusted <- p.adjust(p[4, ], method = "holm")
write.table(cbind(cells, t(p), adjusted), row.names = FALSE, col.names = FALSE, sep = ",", quote = FALSE)
"""


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found


@pytest.mark.servers
def test_every_ratio_interval_and_p_is_what_r_computes_from_the_same_file(here: Desk) -> None:
    require("Rscript")
    said = subprocess.run(["Rscript", "-e", R, DATA], check=True, capture_output=True, text=True).stdout
    document = json.loads(here.fairtrial("analyse", *ASKED, "--json").stdout)
    found = {cell["cell"]: cell["comparisons"]["tpm"][0] for cell in document["analysis"]["cells"]}
    lines = [line.split(",") for line in said.splitlines()]
    assert len(lines) == len(found) == 6
    for memory, users, *figures in lines:
        each = found[f"{memory}+{users.strip()}"]
        ratio = each["ratio"]
        ours = [ratio["estimate"], ratio["low"], ratio["high"], each["p"], each["p_adjusted"]]
        assert ours == pytest.approx([float(figure) for figure in figures], rel=1e-9)


def test_the_table_holds_every_cell_and_standard_input_gives_the_same(here: Desk) -> None:
    shown = here.fairtrial("analyse", *ASKED).stdout
    assert "family of 6, Holm" in shown
    assert len([line for line in shown.splitlines() if line.startswith(("under", "over"))]) == 6
    command = [FAIRTRIAL, "analyse", "-", *map(str, ASKED[1:])]
    piped = subprocess.run(command, input=DATA.read_bytes(), env=here.environment, capture_output=True, check=True)
    assert piped.stdout.decode() == shown


def test_bad_input_ends_with_two_and_says_what_to_do(here: Desk) -> None:
    done = here.fairtrial("analyse", DATA, "--value", "tmp", "--arm", "kernel", code=2)
    assert "did you mean `tpm`?" in done.stderr
    assert "hint:" in done.stderr
    assert here.fairtrial("analyse", *ASKED, "--margin", "200%", code=2).stderr.startswith("error: --margin: expected")
    assert "--better" in here.fairtrial("analyse", *ASKED, "--better", "highest", code=2).stderr
