"""`symperf cache --explain`: what each pass over a kernel's program saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from symperf.codegen.kernel import GridKernel
from symperf.codegen.program import Program
from symperf.codegen.reduce import TopK
from symperf.codegen.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

PROGRAM = Program(
    [*(("input", n) for n in "abs"), ("divide", 0, 2), ("multiply", 3, 1), ("sqrt", 0), ("divide", 1, 2)],
    {"a": 0, "b": 1, "s": 2},
    {},
    {"x": 4, "unread": 5, "y": 6},
)


def test_passes_are_told_for_each_kernel(
    call: Callable[[list[str]], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMPERF_CACHE", str(tmp_path / "cache"))
    assert "no kernel has been compiled" in call(["cache", "--explain"]).out
    kernel = GridKernel(PROGRAM, ["a", "b"], ["x"], reduce=TopK("x", 1), store=Store(tmp_path / "cache"))
    kernel.run({"a": np.arange(1.0, 5.0), "b": np.arange(1.0, 3.0)}, {"s": 3.0}, tier="numba")
    entries = json.loads(call(["cache", "--explain", "--json"]).out)["entries"]
    (entry,) = (entry for entry in entries if entry["passes"])
    assert entry["axes"] == {"a": 4, "b": 2}
    assert [each["name"] for each in entry["passes"]] == ["asked", "prune", "reassociate", "strength_reduce"]
    asked, pruned, *_, last = (each["operations_per_point"] for each in entry["passes"])
    assert asked == (5 * 4 + 8 + 6 * 4 + 5 * 2) / 8  # a / s, times b, the root of a, b / s: a division counts as five
    assert pruned == (5 * 4 + 8) / 8
    assert last < pruned
    told = call(["cache", "--explain"]).out
    assert "kernel over a (4) x b (2)" in told
    assert "strength_reduce" in told
    assert all(entry["passes"] is None for entry in json.loads(call(["cache", "--json"]).out)["entries"])


def test_what_is_removed_is_not_explained(call: Callable[[list[str]], Any]) -> None:
    refused = call(["cache", "--explain", "--clear"])
    assert refused.code == 2
    assert "--clear and --explain" in refused.err


def test_kernels_that_were_compiled_are_listed_and_cleared(tmp_path: Path) -> None:
    """What says that a kernel has been compiled goes with it."""
    store = Store(tmp_path)
    kernel = GridKernel(PROGRAM, ["a", "b"], ["y"], reduce=TopK("y", 1), store=store)
    kernel.run({"a": np.arange(1.0, 5.0), "b": np.arange(1.0, 3.0)}, {"s": 3.0}, tier="numba")
    store.clear()
    assert not list(tmp_path.glob("*.json"))
