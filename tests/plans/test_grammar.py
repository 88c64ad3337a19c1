"""The grammar of derived symbols and constraints: right, small, and safe against hostile text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symperf.codegen.builder import Builder
from symperf.codegen.interpret import arrays, floats, run
from symperf.common.errors import InputError
from symperf.plans.grammar import evaluate, number, predicate
from symperf.plans.grammar_forms import emit

NAMES = ("tp", "pp", "dp", "devices", "memory")
VALUES = {"tp": 8, "pp": 3, "dp": 2, "devices": 50, "memory": 7}


class Emitter(Builder):
    """Writes an expression of inputs."""

    def constant(self, value: float) -> int:
        return self.emit("constant", value)

    def named(self, name: str) -> int:
        return self.emit("input", name)


def _compiled(node: Any, values: dict[str, Any], arithmetic: Any) -> Any:
    to = Emitter()
    at = emit(node, to)
    return run(to.program, values, arithmetic)[at]


RIGHT = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("2 ** 3 ** 2", 512),
    ("-2 ** 2", -4),
    ("2 ** -1", 0.5),
    ("10 - 4 - 3", 3),
    ("48 / 4 / 2", 6),
    ("48 / (4 / 2)", 24),
    ("7 // 2", 3),
    ("-7 // 2", -4),
    ("7 % 4", 3),
    ("-7 % 4", 1),
    ("7 // 2 * 2", 6),
    ("- - 3", 3),
    ("+3", 3),
    ("min(3, max(1, 2), 9)", 2),
    ("ceil(7 / 2) + floor(7 / 2)", 7),
    ("1e3 + .5 + 2.", 1002.5),
    ("devices / (tp * pp)", 50 / 24),
    ("tp ** 0.5 * tp ** 0.5", 8),
    ("tp ** 12", 8**12),
    ("tp ** -2", 1 / 64),
    ("\t tp\n* pp ", 24),
]
TRUE = [
    "tp * pp <= 24",
    "not tp * pp <= 23",
    "tp < 9 and pp > 2",
    "tp == 8 or 1 == 2",
    "1 < pp < 4 <= tp",
    "not (tp < 8) and not tp > 8",
    "tp != pp",
    "devices % 2 == 0",
    "not devices % tp == 0",
    "1 == 2 or 2 == 2 and 3 == 3",
    "not 1 == 2",
    "not not 1 == 1",
    "tp >= 8 and tp <= 8",
    "memory > 6.999999",
    "1e-9 > 0",
    "not 0 > 0",
]


@pytest.mark.parametrize(("text", "value"), RIGHT)
def test_numbers(text: str, value: float) -> None:
    """Precedence and operations are those of Python, in every form."""
    node = number(text, NAMES, "here")
    assert math.isclose(evaluate(node, VALUES), value)
    assert math.isclose(_compiled(node, VALUES, floats()), value)


@pytest.mark.parametrize("text", TRUE)
def test_conditions(text: str) -> None:
    """A slack is not negative exactly where the condition holds."""
    for written, holds in ((text, True), (f"not ({text})", False)):
        node = predicate(written, NAMES, "here")
        assert evaluate(node, VALUES) is holds
        assert (_compiled(node, VALUES, floats()) >= 0) is holds


@given(st.lists(st.integers(1, 200), min_size=3, max_size=3))
def test_divisibility_on_arrays(numbers: list[int]) -> None:
    """Remainders and quotients of whole numbers are exact on arrays too."""
    a, b, c = numbers
    values = {"tp": np.array([a, b, c], dtype=float), "pp": np.array([b, c, a], dtype=float)}
    for text in ("tp % pp", "tp // pp"):
        got = _compiled(number(text, NAMES, "here"), values, arrays())
        assert got.tolist() == [x % y if "%" in text else x // y for x, y in ((a, b), (b, c), (c, a))]


def test_a_named_condition() -> None:
    """`fits` stands for a condition."""
    fits = {"fits": predicate("memory <= 7", NAMES, "here")}
    assert evaluate(predicate("fits and tp == 8", NAMES, "here", fits), VALUES)
    with pytest.raises(InputError, match="needs a number, found a condition"):
        predicate("fits + 1 > 0", NAMES, "here", fits)


HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__bases__[0].__subclasses__()",
    "tp.__class__",
    "tp.real",
    "__builtins__",
    "__class__",
    "_",
    "lambda: 0",
    "(lambda x: x)(1)",
    "open('/etc/passwd')",
    "eval('1')",
    "exec('1')",
    "print(1)",
    "tp()",
    "min",
    "min()",
    "min(1)",
    "ceil(1, 2)",
    "[1, 2]",
    "{1: 2}",
    "'text'",
    '"text"',
    "f'{tp}'",
    "tp if tp else pp",
    "tp := 3",
    "tp = 3",
    "tp; pp",
    "tp & pp",
    "tp | pp",
    "~tp",
    "tp @ pp",
    "tp << 3",
    "0x10",
    "1_000",
    "1j",
    "True",
    "None",
    "tp is pp",
    "tp in pp",
    "yield",
    "*tp",
    "**tp",
    "tp,",
    "(tp",
    "tp)",
    "()",
    "tp pp",
    "2 tp",
    "tp +",
    "* 2",
    "tp == ",
    "not tp",
    "tp and pp",
    "(tp < 1) + 1",
    "min(tp < 1, 2)",
    "é",
    "tp\u200b",
    "ｔｐ",
    "tp\x00",
    "\\",
    "# comment",
    "tp # comment",
    "",
    "   ",
    "\n",
]
HUGE = [
    "9**9**9",
    "9**9**9**9",
    "9**999999999",
    "(9**64)**64",
    "((2**64)**64)**64",
    "10**-400",
    "2**(2**20)",
    "tp**(9**9**9)",
    "tp**pp",
    "tp**1e9",
    "1e999",
    "1e-999999999",
    "0.0000000000e-99999999 + 1e99999999",
    "9" * 400,
    "0**-1",
    "(-2)**0.5",
    "(1 / 0)**2",
    "2**(1 / 0)",
    "1**" * 600 + "1",
    "(" * 5000 + "1" + ")" * 5000,
    "(" * 300 + "1" + ")" * 300,
    "-(" * 300 + "1" + ")" * 300,
    "min(1, " * 200 + "1" + ")" * 200,
    "1+" * 3000 + "1",
    "1+" * 500 + "1",
    "not " * 400 + "1 == 1",
    "1<" * 400 + "2",
    "tp" * 5000,
]


@pytest.mark.parametrize("text", [*HOSTILE, *HUGE], ids=lambda text: repr(text[:25]))
def test_hostile_text_is_refused(text: str) -> None:
    """One line that names the place, and nothing is run."""
    for parse in (number, predicate):
        with pytest.raises(InputError) as caught:
            parse(text, NAMES, "study.toml: here")
        assert str(caught.value).startswith("study.toml: here")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("found", [None, 3, 2.5, True, b"tp", ["tp"], {"a": 1}])
def test_only_text_is_an_expression(found: Any) -> None:
    """Anything else is told what was expected."""
    with pytest.raises(InputError, match="expected an expression as text"):
        number(found, NAMES, "here")


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Nothing but an `InputError` ever comes out."""
    for parse in (number, predicate):
        try:
            parse(text, NAMES, "here")
        except InputError:
            continue


@given(
    st.lists(
        st.sampled_from(["tp", "(", ")", "+", "-", "**", "2", "9", "min(", ",", "<", "and", "not", "/"]), max_size=25
    )
)
def test_any_tokens_are_parsed_or_refused(tokens: list[str]) -> None:
    """What is parsed has a value in every form, or divides by zero."""
    text = " ".join(tokens)
    try:
        node = number(text, NAMES, "here")
    except InputError:
        return
    try:
        value = evaluate(node, VALUES)
    except (ZeroDivisionError, OverflowError):
        return
    if not isinstance(value, complex):
        assert math.isclose(_compiled(node, VALUES, floats()), value, rel_tol=1e-9) or abs(value) > 1e15


def test_errors_help() -> None:
    """A misspelt name is told its nearest, a bad sign its column."""
    with pytest.raises(InputError, match=r"unknown name 'devises'.*did you mean devices"):
        number("devises / tp", NAMES, "derived dp")
    with pytest.raises(InputError, match=r"found '\.' at column 3"):
        number("tp.x", NAMES, "here")
    with pytest.raises(InputError, match="true or false, expected a number"):
        number("tp < 2", NAMES, "here")
    with pytest.raises(InputError, match="is a number, expected a condition such as"):
        predicate("tp", NAMES, "here")
