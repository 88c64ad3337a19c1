"""Small tables of measurements for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symperf.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TRAINING = {
    "id": "MINE-1",
    "model": "gpt-22b",
    "hw_key": "a100-80gb-sxm",
    "num_devices": "8",
    "tp": "8",
    "pp": "1",
    "dp": "1",
    "micro_batch_seqs": "4",
    "global_batch_seqs": "4",
    "seq_len_tokens": "2048",
    "recompute": "full",
    "step_time_s": "1.42",
}


def table(rows: list[dict[str, str]]) -> str:
    """The text of a CSV file of some rows, which have the same columns."""
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n"


def folder(path: Path, rows: list[dict[str, str]], name: str = "training.csv") -> Path:
    """A folder with one table."""
    (path / name).write_text(table(rows), encoding="utf-8")
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that `symperf validate` refuses these arguments with."""
    assert main(["validate", *arguments]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert done.err.count("\n") == 1
    return done.err
