"""Which blocks fio's hash reaches: published sizes, properties, and the offsets that fio itself draws."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.workloads.fio import footprint

BLOCK_BYTES = 512
DRAWS_PER_BLOCK = 12  # of 100,000 reachable blocks that are drawn alike, less than one is missed


@pytest.mark.parametrize(
    ("blocks", "share"),
    [(2_621_440, 0.765), (1_310_720, 0.922), (51_200, 0.377), (50_021, 0.124), (51_199, 0.826), (65_536, 1.0)],
)
def test_the_share_is_that_of_published_sizes(blocks: int, share: float) -> None:
    assert footprint.share(blocks) == pytest.approx(share, abs=0.0005)


@given(st.integers(1, 3000))
def test_the_count_is_that_of_a_slow_loop(blocks: int) -> None:
    met = {(rank * footprint.GOLDEN_RATIO % 2**64) % blocks for rank in range(blocks)}
    assert footprint.share(blocks) == len(met) / blocks


@given(st.integers(0, 40))
def test_powers_of_two_are_reached_whole(exponent: int) -> None:
    assert footprint.share(1 << exponent) == 1.0


def test_counting_goes_on_over_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = footprint.share(50_021)
    monkeypatch.setattr(footprint, "CHUNK", 1000)
    assert footprint.share(50_021) == whole


def test_a_file_of_too_many_blocks_is_not_counted() -> None:
    assert footprint.share(footprint.MOST_BLOCKS + 1) is None


def offsets(directory: Path, distribution: str, blocks: int) -> set[int]:
    """The blocks that the real fio meets, from its own log of I/Os, with an engine that does none."""
    log = directory / "iolog"
    subprocess.run(
        [
            "fio",
            "--name=job",
            "--ioengine=null",
            f"--size={blocks * BLOCK_BYTES}",
            f"--bs={BLOCK_BYTES}",
            "--rw=randread",
            f"--random_distribution={distribution}",
            "--norandommap",
            f"--number_ios={blocks * DRAWS_PER_BLOCK}",
            "--io_size=1t",
            "--randseed=11",
            f"--write_iolog={log}",
            "--output=/dev/null",
        ],
        check=True,
        cwd=directory,
        capture_output=True,
    )
    rows = (line.split() for line in log.read_text().splitlines())
    return {int(row[3]) // BLOCK_BYTES for row in rows if len(row) == 5 and row[2] == "read"}


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
@pytest.mark.parametrize("blocks", [5_120, 5_021, 4_096])
def test_the_real_fio_meets_as_many_blocks(tmp_path: Path, blocks: int) -> None:
    """A flat law, so that every rank is drawn; all three skewed distributions go through the same hash."""
    met = offsets(tmp_path, "zipf:0.01", blocks)
    share = footprint.share(blocks)
    assert share is not None
    assert len(met) / blocks == pytest.approx(share, abs=0.001)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
def test_uniform_access_meets_every_block(tmp_path: Path) -> None:
    assert len(offsets(tmp_path, "random", 5_021)) == 5_021
