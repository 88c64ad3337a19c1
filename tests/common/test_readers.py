"""One reader of numbers for every door: Python, NumPy, flags, TOML; and lines that stay short whatever is given."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import symperf as sf
from symperf.common.errors import nearest, quote
from symperf.common.files import MOST_COLUMNS, csv_table, parse_toml, read_file
from symperf.common.numbers import as_plain, numeral
from symperf.common.system_errors import REMEDIES, cause
from symperf.models.config_files import without_repeats

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = (np.int64, np.int32, np.uint8, np.float32, np.float64, np.longdouble, np.asarray)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_numpy_are_numbers(kind: Callable[[Any], Any]) -> None:
    """Everywhere that Python's are, and the run has Python's: what is said of it can be written as JSON."""
    plan = sf.Plan(tp=kind(2), micro_batch=kind(1), overlap_tp=kind(1), sequence_parallel=np.bool_(True))
    assert plan == sf.Plan(tp=2, micro_batch=1, overlap_tp=1, sequence_parallel=True)
    run = sf.training("llama-2-7b", "h100-sxm", plan, batch=kind(8), sequence=kind(128), num_layers=kind(4))
    asked = (run.batch, run.sequence, run.plan.tp, run.given["num_layers"])
    assert asked == (8, 128, 2, 4)
    assert {type(value) for value in asked} <= {int, float}
    assert run.bind(tp=kind(4), compute_units=kind(100)).plan.tp == 4
    fast = run.bind(memory_bandwidth=np.float32(2**41), launch_latency=np.float64(1e-6))
    assert fast.value("time") == run.bind(memory_bandwidth=float(2**41), launch_latency=1e-6).value("time")


def test_what_symperf_gives_it_takes() -> None:
    """The best plan of a table is a plan."""
    run = sf.training("llama-2-7b", "h100-sxm", batch=8, sequence=128)
    best = run.best(tp=[1, 2], minimize="time", top=1)
    assert run.bind(tp=best.tp.iloc[0]).value("time") == pytest.approx(best.time.iloc[0])


@pytest.mark.parametrize("value", [np.array([1, 2]), np.datetime64(1, "s"), np.nan, np.str_("x"), np.complex64(1)])
def test_other_things_of_numpy_are_refused(value: Any) -> None:
    for ask in (lambda: sf.Plan(tp=value), lambda: sf.training("gpt2", "h100-sxm", batch=value, sequence=8)):
        with pytest.raises(sf.InputError, match="expected a whole number"):
            ask()


def test_a_number_that_is_plain_stays_the_same_object() -> None:
    for value in (3, 2.5, True, "x", None, [1]):
        assert as_plain(value) is value


@pytest.mark.parametrize("digits", [310, 400, 4000, 5000, 100_000])
def test_numbers_of_many_digits_are_one_line(digits: int, refused: Callable[[list[str]], str]) -> None:
    """At flags, settings, lists of numbers and requirements."""
    many = "9" * digits
    train = ["train", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--sequence", "128"]
    serve = ["serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "8", "--generate", "8"]
    search = ["search", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--sequence", "128", "--devices"]
    for asked in (
        [*train, "--overlap-tp", many],
        [*train, "--set", f"overlap_tp={many}"],
        [*train, "--set", f"num_layers={many}"],
        [*train, "--set", f"memory_bandwidth={many}"],
        [*train[:5], many, *train[6:]],
        [*serve, "--ttft", many, "--tpot", "1"],
        [*search, many],
        [*search, f"8,{many}"],
        [*search, "8", "--require", f"tp={many}"],
    ):
        assert len(refused(asked)) < 300


def test_whole_numbers_of_python_have_no_limit_but_that_of_floats() -> None:
    for value in (10**400, 10**5000, -(10**5000)):
        for ask in (
            lambda value=value: sf.Plan(tp=value),
            lambda value=value: sf.Plan(overlap_tp=value),
            lambda value=value: sf.training("gpt2", "h100-sxm", batch=8, sequence=8, memory_bandwidth=value),
            lambda value=value: sf.serving("gpt2", "h100-sxm", prompt=8, generate=8, ttft=value, tpot=1),
        ):
            with pytest.raises(sf.InputError, match="found"):
                ask()
    assert numeral("0" * 1000 + "7", int) == 7
    assert numeral("1" * 309, int) == int("1" * 309)
    assert numeral("9" * 309, int) is None


# --- text and files


def test_quotes_are_short_and_never_fail() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    for value in ("x" * 10**7, 10**5000, [10**5000], {"a": {"b": 10**5000}}, nested, b"\xff" * 10**6, "\n" * 100):
        assert len(quote(value)) <= 60
        assert "\n" not in quote(value)
    assert nearest("x" * 10**6, ["y" * 10**6, "z"]) == ""
    assert nearest("tp", ["tp2"] * 10**5) == "; did you mean tp2?"


def test_heads_and_keys_take_linear_time() -> None:
    """A hundred thousand and more, where each was once compared with all others."""
    count = 200_000
    with pytest.raises(sf.InputError, match=f"'k{count - 1}' comes twice"):
        without_repeats([*((f"k{k}", k) for k in range(count)), (f"k{count - 1}", 0)])
    for columns in (MOST_COLUMNS + 1, 10**6):
        with pytest.raises(sf.InputError, match=r"columns, expected at most 10,000"):
            csv_table(",".join(map(str, range(columns))), "f")
    assert len(csv_table(",".join(map(str, range(MOST_COLUMNS))), "f")[0]) == MOST_COLUMNS
    assert len(parse_toml("\n".join(f"k{k} = {k}" for k in range(50_000)), "f")) == 50_000


@pytest.mark.parametrize("text", ["[" + "a." * 10**5 + "a]", "a = {" + '"b" . ' * 3000 + "c = 1}", "a." * 51 + "b = 1"])
def test_keys_of_many_parts_are_refused_at_once(text: str) -> None:
    with pytest.raises(sf.InputError, match="line 2: a key of more than 50 parts"):
        parse_toml(f"x = 1\n{text}", "f")


@pytest.mark.parametrize(
    "text", ["a.b.c = 1", '"a.b.c" = [1.5, 2.5]', "a = '" + "x." * 40 + "'", "a = [" + "1.0, " * 99 + "]"]
)
def test_what_people_write_is_read(text: str) -> None:
    assert parse_toml(text, "f")


def test_deep_tables_are_refused() -> None:
    with pytest.raises(sf.InputError, match="'a' is nested deeper than 50 levels"):
        parse_toml("a = " + "[" * 60 + "]" * 60, "f")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_no_one_writes_to_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path / "pipe", "f", "a file", 10) == b""
    reading, writing = os.pipe()
    os.write(writing, b"abc")
    os.close(writing)
    assert read_file(f"/dev/fd/{reading}", "f", "a file", 10) == b"abc"
    os.close(reading)


def test_causes_say_what_helps() -> None:
    for number, remedy in REMEDIES.items():
        assert cause(OSError(number, os.strerror(number))) == f"{os.strerror(number)}, {remedy}"
    assert cause(OSError(errno.ENOENT, "No such file")) == "No such file"
    assert "choose another" in cause(UnicodeEncodeError("utf-8", "\udcff", 0, 1, "no"))
