"""A name that was changed works, and is told once."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common import deprecations
from symperf.common.deprecations import Former

if TYPE_CHECKING:
    from collections.abc import Callable

WORK = ["train", "gpt2", "-s", "h100-sxm", "--json"]


@pytest.fixture(autouse=True)
def former(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names that were never there."""
    monkeypatch.setattr(deprecations, "FORMER", {"global_batch": Former("batch", "0.2.0")})
    monkeypatch.setattr(deprecations, "_told", set())


@pytest.mark.parametrize("written", [["--global-batch", "8"], ["--global-batch=8"]])
def test_a_former_flag_is_told_once(written: list[str], call: Callable[[list[str]], Any]) -> None:
    line = "symperf: note: --global-batch is called --batch since 0.2.0, and will go\n"
    first, again = (call([*WORK, *written, "--sequence", "128"]) for _ in range(2))
    assert (first.code, first.err, again.err) == (0, line, "")
    assert first.out == again.out == call([*WORK, "--batch", "8", "--sequence", "128"]).out


def test_a_former_argument_is_told_once() -> None:
    with pytest.warns(FutureWarning, match="global_batch is called batch since"):
        run = sf.training("gpt2", "h100-sxm", global_batch=8, sequence=128)  # type: ignore[call-arg]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sf.training("gpt2", "h100-sxm", global_batch=8, sequence=128).batch == 8  # type: ignore[call-arg]
    assert run.batch == 8
