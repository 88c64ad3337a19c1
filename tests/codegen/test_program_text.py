"""Programs as text: read back exactly, and text that is no program is refused with the number of its line."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.programs import step
from support.strategies import programs

from symperf.codegen.builder import Builder
from symperf.codegen.program import Program
from symperf.codegen.text import KINDS, from_text, to_text

names = st.text(max_size=12) | st.sampled_from(
    ["let", "order", "time", "a/b.c-d@e", "%0", "; z", '"', "\\", "\u2028", "\ud800"]
)


def _same(one: Program, two: Program) -> None:
    assert one == two
    for kind in KINDS:
        assert list(getattr(one, kind)) == list(getattr(two, kind))


@given(programs)
def test_round_trip(program: Program) -> None:
    """Instructions, names and their order."""
    text = to_text(program)
    assert program.text() == text
    _same(from_text(text), program)
    assert to_text(from_text(text)) == text


def test_round_trip_of_the_step() -> None:
    """The real one."""
    program, _ = step()
    _same(from_text(to_text(program)), program)


@given(st.dictionaries(names, st.integers(0, 3)), st.dictionaries(names, st.integers(0, 3)), names, names)
def test_any_name_survives(outputs: dict[str, int], lets: dict[str, int], first: str, second: str) -> None:
    """Whatever its letters; several names of one value; any order."""
    inputs = {first: 0} | ({second: 1} if second != first else {})
    start = [("input", name) for name in inputs]
    program = Program([*start, ("constant", 2), ("add", 0, 1), ("let", 1)], inputs, lets, outputs)
    text = to_text(program)
    assert text.isascii()
    _same(from_text(text), program)


@given(st.floats() | st.integers())
def test_numbers_are_exact(value: float) -> None:
    """Every float to the bit and every integer; an integer stays one."""
    read = from_text(to_text(Program([("constant", value)]))).instructions[0][1]
    assert type(read) is type(value)
    if isinstance(value, float):
        assert struct.pack("<d", read) == struct.pack("<d", value) or math.isnan(value)
        if math.isfinite(value):
            assert from_text(f"%0 = constant {value.hex()}").instructions[0][1] == value
    else:
        assert read == value


def test_readable() -> None:
    """What it looks like."""
    builder = Builder()
    a, b = builder.emit("input", "a"), builder.emit("input", "b c")
    part = builder.let(builder.emit("divide", a, b))
    builder.program.outputs = {"z": part, "a": a, "y": part}
    builder.program.lets = {"half": part}
    assert to_text(builder.program).splitlines() == [
        "%0 = input a  ; a",
        '%1 = input "b c"',
        "%2 = divide %0 %1",
        "%3 = let %2  ; z, y, let half",
        "order outputs z, a, y",
    ]


def test_blank_lines_and_line_ends() -> None:
    """Empty lines and the line ends of Windows are no harm."""
    assert from_text("\n%0 = input x  ; z\r\n\n") == Program([("input", "x")], {"x": 0}, {}, {"z": 0})
    assert from_text("") == Program()


HOSTILE = [
    ("%0 = exp 1", "unknown operation 'exp'"),
    ("%0 =", "unknown operation"),
    ("%1 = input x", "expected '%0 = '"),
    ("x = input x", "expected '%0 = '"),
    ("%0 = input x\n%0 = input y", "line 2: expected '%1 = '"),
    ("%0 = input x\n%1 = input x", "line 2: input 'x' a second time"),
    ("%0 = input", "input takes 1, found 0"),
    ("%0 = input x y", "input takes 1, found 2"),
    ("%0 = input 5", "'5' is not a name"),
    ('%0 = input "x', "cannot read"),
    ('%0 = input "\\x41"', "line 1"),
    ("%0 = sqrt %0", "'%0' is not an earlier value"),
    ("%0 = sqrt %1", "not an earlier value"),
    ("%0 = input x\n%1 = sqrt 0", "line 2: '0' is not an earlier value"),
    ("%0 = input x\n%1 = sqrt %-1", "line 2: cannot read"),
    ("%0 = input x\n%1 = add %0", "line 2: add takes 2, found 1"),
    ("%0 = input x\n%1 = sqrt %999999999999999999", "line 2"),
    ("%0 = input x\n%1 = sqrt %" + "9" * 10000, "line 2"),
    ("%0 = constant __import__('os').system('true')", "not a number"),
    ("%0 = constant 1+1", "not a number"),
    ("%0 = constant 1e", "not a number"),
    ("%0 = constant 0x", "not a number"),
    ("%0 = constant 1_000", "not a number"),
    ("%0 = constant ١", "not a number"),
    ("%0 = constant " + "9" * 100000, "not a number"),
    ("%0 = constant True", "not a number"),
    ("%0 = input x ;", "a name is missing"),
    ("%0 = input x ; a,,b", "a name is missing"),
    ("%0 = input x ; a, a", "the name 'a' a second time"),
    ("%0 = input x ; a b", "cannot read the name"),
    ("%0 = input x ; a ; b", "cannot read the name"),
    ("%0 = input x ; let", None),
    ("%0 = input x ; let let let", "cannot read the name"),
    ("%0 = input é", "not a name"),
    ("%0 = input x\x00", "not a name"),
    ("%0 = input x\norder outputs x", "line 2: order outputs does not name each"),
    ("order", "line 1: order of ''"),
    ("order everything a", "line 1: order of 'everything'"),
    ("%0 = input x ; a\norder outputs a, a", "line 2: order outputs"),
    ("import os", "expected '%0 = '"),
    ("%0 = input x" + " " * 100000 + "\x0b", "cannot read"),
]


@pytest.mark.parametrize(("text", "complaint"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_program_is_refused(text: str, complaint: str | None) -> None:
    """With one line that says where and why; nothing is ever run."""
    if complaint is None:
        assert from_text(text).outputs == {"let": 0}
        return
    with pytest.raises(ValueError, match=r"line [12]: ") as caught:
        from_text(text)
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 200


@given(st.text(alphabet='%0123 =;,"\\letinpuxorderconstaddx\n-.e\x00é', max_size=80))
def test_any_text_is_a_program_or_refused(text: str) -> None:
    """Never another exception, and what is accepted is a sound program."""
    try:
        program = from_text(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"^line \d+: "):
            from_text(text)
    else:
        program.check()
        _same(from_text(to_text(program)), program)
