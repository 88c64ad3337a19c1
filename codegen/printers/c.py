"""The C back end: one dictionary from operation to text, and the words C allows.

Every value is a `const double` of its own, so no text needs parentheses, and C's rounding is that of the interpreter.
Maxima and minima are comparisons that pick the second operand when they are undecided, as the processor's own
instructions do.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from .table import statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..program import Program

TABLE: dict[str, str] = {
    "let": "{0}",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "max": "{0} > {1} ? {0} : {1}",
    "min": "{0} < {1} ? {0} : {1}",
    "power": "pow({0}, {1})",
    "sqrt": "sqrt({0})",
    "log2": "log2({0})",
    "ceil_div": "ceil({0} / {1})",
    "above_one": "{0} > 1.0 ? 1.0 : 0.0",
    "stop_gradient": "{0}",
    "at_least": "{0} >= {1} ? 1.0 : 0.0",
}
FORM = "const double {} = {};"
_PLAIN = re.compile(r"[A-Za-z0-9_./ -]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast "
    "constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false float "
    "for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
    "protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union "
    "unsigned using virtual void volatile wchar_t while xor xor_eq size_t ptrdiff_t NULL main inputs outputs "
    "INFINITY NAN "
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor "
    "fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma log log10 log1p log2 logb lrint lround modf "
    "nan nearbyint nextafter pow remainder remquo rint round scalbn sin sinh sqrt tan tanh tgamma trunc y0 y1 yn "
    "abort atexit atof atoi atol calloc clock close exit fork free getenv index kill labs link malloc memcmp memcpy "
    "memmove memset open pause pipe printf putchar puts qsort rand read realloc remove rename rindex scanf signal "
    "sleep sprintf srand stat strcat strchr strcmp strcpy strlen strncpy strstr system time unlink wait write"
)
_RESERVED = frozenset(_WORDS.split())
"""Words of C and C++, common functions of their library, and what generated code calls its own variables."""


def number(value: float) -> str:
    """A literal of exactly this double, whatever the locale: decimal where it is whole, hexadecimal otherwise.

    Raises:
        OverflowError: a whole number too large for a double.

    >>> number(2), number(0.1), number(-0.5), number(1e300)
    ('2.0', '0x1.999999999999ap-4', '(-0x1.0000000000000p-1)', '0x1.7e43c8800759cp+996')
    """
    double = float(value)
    if math.isnan(double):
        return "NAN"
    if math.isinf(double):
        return "INFINITY" if double > 0 else "(-INFINITY)"
    text = repr(double) if double.is_integer() and abs(double) < 2**53 and "e" not in repr(double) else double.hex()
    return f"({text})" if text.startswith("-") else text


def string(text: str) -> str:
    r"""A string literal of the text's UTF-8 bytes; anything but letters, digits and a few signs is an octal escape.

    >>> print(string('a/b"*/'))
    "a/b\042\052/"
    """
    data = text.encode("utf-8", "surrogatepass")
    shown = "".join(chr(b) if b < 128 and _PLAIN.fullmatch(chr(b)) else f"\\{b:03o}" for b in data)
    return f'"{shown}"'


def function_name(name: str) -> str:
    """The name itself, if it can be that of a C and C++ function beside the C library.

    Raises:
        ValueError: it cannot.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED or re.fullmatch(r"[a-z]\d*", name) or len(name) > 64:
        raise ValueError(f"{name!r} cannot be the name of a C function: letters, digits, _, and no word of C's own")
    return name


def constants(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """A distinct C identifier for each name, readable where the name is.

    >>> constants("S_", ["tp", "a/b", "a_b", "é"])
    {'tp': 'S_tp', 'a/b': 'S_a_b', 'a_b': 'S_a_b_2', 'é': 'S__'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = prefix + re.sub(r"[^A-Za-z0-9_]", "_", name)
        unique, k = plain, 1
        while unique in taken:
            k += 1
            unique = f"{plain}_{k}"
        taken.add(unique)
        found[name] = unique
    return found


def straight(program: Program, inputs: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Statements for one point, and the text of each output; `inputs` has the identifier of each input's position."""
    reads = {name: f"inputs[{place}]" for name, place in inputs.items()}
    texts, names = statements(program, TABLE, number, reads, FORM)
    return [text for text in texts if text], {name: names[p] for name, p in program.outputs.items()}
