"""The functions that cost formulas may use besides sums, products and powers.

Each atom declares what the cost language needs to know of it: its dimension rule, whether it rises (+1) or falls
(-1) in each argument, its log-log curvature, and a plain-SymPy definition. The fold in `discipline` composes these
declarations into a proof for any formula; `operation` is the name by which a compiler knows the atom.

`Max` and `Min` are SymPy's, without the pairwise comparison that makes SymPy's constructors take minutes on an
assembled cost: arguments are flattened, numbers folded, duplicates dropped, and that is all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import sympy
from sympy.core.sorting import default_sort_key

from .dimension import ONE, Dimension, DimensionError, alike


class Max(sympy.Max):
    """The largest of its arguments, which have one dimension: the critical one of several concurrent times.

    >>> x, y = sympy.symbols("x y")
    >>> Max(x, 2, Max(y, 3), x)
    Max(3, x, y)
    """

    operation: ClassVar[str] = "max"
    curvature: ClassVar[str] = "convex"

    def __new__(cls, *args: Any) -> Any:
        """Build it, compared by nothing but identity and number."""
        return _extremum(cls, args)

    def monotone(self) -> tuple[int, ...]:
        """Rises in every argument."""
        return (1,) * len(self.args)

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """That of its arguments."""
        return alike(parts, "maximum", self)


class Min(sympy.Min):
    """The smallest of its arguments, which have one dimension: the best of several algorithms.

    >>> x, y = sympy.symbols("x y")
    >>> Min(x, y, 2, 3)
    Min(2, x, y)
    """

    operation: ClassVar[str] = "min"
    curvature: ClassVar[str] = "concave"

    def __new__(cls, *args: Any) -> Any:
        """Build it, compared by nothing but identity and number."""
        return _extremum(cls, args)

    def monotone(self) -> tuple[int, ...]:
        """Rises in every argument."""
        return (1,) * len(self.args)

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """That of its arguments."""
        return alike(parts, "minimum", self)


def _extremum(cls: Any, args: tuple[Any, ...]) -> Any:
    return _known_extremum(cls, tuple(sympy.sympify(arg, strict=True) for arg in args))


@lru_cache(maxsize=1 << 14)
def _known_extremum(cls: Any, args: tuple[Any, ...]) -> Any:
    """A maximum or minimum: steps of similar structures ask for the same ones again and again."""
    best = max if cls.operation == "max" else min
    flat: set[Any] = set()
    number = None
    for arg in args:
        for part in arg.args if isinstance(arg, cls) else (arg,):
            if part.is_Number:
                number = part if number is None else best(number, part)
            else:
                flat.add(part)
    if number is not None:
        flat.add(number)
    if len(flat) == 1:
        return flat.pop()
    result = sympy.Expr.__new__(cls, *_ordered(flat))
    result._argset = frozenset(flat)
    return result


def _ordered(parts: set[Any]) -> list[Any]:
    """In the order of SymPy's sort keys, of which only those are made whole whose beginnings are alike.

    The key of a long sum takes as long as a hundred comparisons.
    """
    alike: dict[Any, list[Any]] = {}
    for part in parts:
        alike.setdefault(_beginning(part), []).append(part)
    return [
        part
        for key in sorted(alike)
        for part in (sorted(alike[key], key=default_sort_key) if len(alike[key]) > 1 else alike[key])
    ]


def _beginning(part: Any) -> tuple[Any, int]:
    """What `part.sort_key()` begins with: the class of what is left without coefficient and exponent, and its parts."""
    if part.is_Symbol or part.is_Number:
        key = part.sort_key()
        return key[0], key[1][0]
    base = part.as_coeff_Mul()[1]
    if base.is_Pow:
        base = base.as_base_exp()[0]
    return base.class_key(), 1 if base.is_Atom else len(base.args)


class Atom(sympy.Function):
    """A function of the cost language: non-negative where its arguments are in their domain."""

    operation: ClassVar[str]
    directions: ClassVar[tuple[int, ...]]
    curvature: ClassVar[str | None]

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Folds numbers exactly."""
        return cls.value(*args) if all(arg.is_Number for arg in args) else None

    @classmethod
    def value(cls, *args: Any) -> Any:
        """The value at numbers."""
        return cls.plain(*args)

    @staticmethod
    def plain(*args: Any) -> Any:
        """The definition in plain SymPy."""
        raise NotImplementedError

    def definition(self) -> Any:
        """The application itself, in plain SymPy."""
        return self.plain(*self.args)

    def relaxed(self) -> Any:
        """A log-log convex lower bound in plain sums, products and maxima, or None if the atom declares none."""
        return None

    def monotone(self) -> tuple[int, ...]:
        """The direction in each argument: +1 rises, -1 falls."""
        return self.directions

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """Dimensionless, of dimensionless arguments."""
        for part, arg in zip(parts, self.args, strict=True):
            if part != ONE:
                raise DimensionError(f"{self.func.__name__} of a quantity in {part}: {arg}")
        return ONE

    def _eval_evalf(self, prec: int) -> Any:
        return None if self.free_symbols else self.definition()._eval_evalf(prec)

    def _tex(self, printer: Any) -> str:
        raise NotImplementedError

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = self._tex(printer)
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _eval_is_extended_nonnegative(self) -> bool:
        return True

    def _eval_is_real(self) -> bool:
        return True


class ceil_div(Atom):  # noqa: N801
    """How many bins of `size` hold `amount`: `ceil(amount / size)`, kept whole.

    Split into `ceil(amount * (1/size))` it would be wrong in floating point: `ceil(525 * (1/75))` is 8.

    >>> ceil_div(525, 75), ceil_div(526, 75)
    (7, 8)
    """

    nargs = 2
    operation = "ceil_div"
    directions = (1, -1)
    curvature = None

    @staticmethod
    def plain(amount: Any, size: Any) -> Any:
        """`ceiling(amount / size)`."""
        return sympy.ceiling(amount / size)

    def relaxed(self) -> Any:
        """The quotient without rounding, and at least one bin."""
        return Max(1, self.args[0] / self.args[1])

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """A count; amount and size share a dimension."""
        alike(parts, "ratio", self)
        return ONE

    def _tex(self, printer: Any) -> str:
        amount, size = map(printer._print, self.args)
        return rf"\left\lceil \frac{{{amount}}}{{{size}}} \right\rceil"


class log2(Atom):  # noqa: N801
    """The logarithm to base two of a count of at least one: the depth of a binary tree.

    >>> log2(8), log2(3)
    (3, log2(3))
    """

    nargs = 1
    operation = "log2"
    directions = (1,)
    curvature = "concave"

    @staticmethod
    def plain(count: Any) -> Any:
        """`log(count, 2)`."""
        return sympy.log(count, 2)

    @classmethod
    def value(cls, count: Any) -> Any:
        """The value at a number; an irrational one stays an atom of the language."""
        exact = cls.plain(count)
        return exact if exact.is_Number else None

    def _tex(self, printer: Any) -> str:
        return rf"\log_{{2}} {printer._print(self.args[0])}"


class ring_share(Atom):  # noqa: N801
    """The part of a message that crosses each link of a ring of `ranks`: `(ranks - 1) / ranks`.

    >>> ring_share(8), ring_share(1)
    (7/8, 0)
    """

    nargs = 1
    operation = "ring_share"
    directions = (1,)
    curvature = "concave"

    @staticmethod
    def plain(ranks: Any) -> Any:
        """`(ranks - 1) / ranks`."""
        return (ranks - 1) / ranks

    def _tex(self, printer: Any) -> str:
        ranks = printer._print(self.args[0])
        return rf"\frac{{{ranks} - 1}}{{{ranks}}}"


class bubble(Atom):  # noqa: N801
    """Idle micro-batch slots of a pipeline: `(stages - 1) / virtual_stages`.

    >>> bubble(8, 1), bubble(8, 3)
    (7, 7/3)
    """

    nargs = 2
    operation = "bubble"
    directions = (1, -1)
    curvature = "concave"

    @staticmethod
    def plain(stages: Any, virtual: Any) -> Any:
        """`(stages - 1) / virtual`."""
        return (stages - 1) / virtual

    def _tex(self, printer: Any) -> str:
        stages, virtual = map(printer._print, self.args)
        return rf"\frac{{{stages} - 1}}{{{virtual}}}"


class less_one(Atom):  # noqa: N801
    """One fewer than a count of at least one: the steps of a ring, the micro-batches after the first.

    >>> less_one(8)
    7
    """

    nargs = 1
    operation = "less_one"
    directions = (1,)
    curvature = "concave"

    @staticmethod
    def plain(count: Any) -> Any:
        """`count - 1`."""
        return count - 1

    def _tex(self, printer: Any) -> str:
        return rf"\left({printer._print(self.args[0])} - 1\right)"


class complement(Atom):  # noqa: N801
    """What a fraction between 0 and 1 leaves: `1 - fraction`.

    >>> complement(sympy.Rational(1, 4))
    3/4
    """

    nargs = 1
    operation = "complement"
    directions = (-1,)
    curvature = "concave"

    @staticmethod
    def plain(fraction: Any) -> Any:
        """`1 - fraction`."""
        return 1 - fraction

    def _tex(self, printer: Any) -> str:
        return rf"\left(1 - {printer._print(self.args[0])}\right)"


class above_one(Atom):  # noqa: N801
    """1 when a count is above one, else 0: whether a group has anyone to talk to.

    >>> above_one(1), above_one(2)
    (0, 1)
    """

    nargs = 1
    operation = "above_one"
    directions = (1,)
    curvature = None

    @staticmethod
    def plain(count: Any) -> Any:
        """`1` if `count > 1` else `0`."""
        return sympy.Piecewise((1, count > 1), (0, True))

    @classmethod
    def value(cls, count: Any) -> Any:
        """The value at a number."""
        return sympy.Integer(1 if count > 1 else 0)

    def _tex(self, printer: Any) -> str:
        return rf"\left[{printer._print(self.args[0])} > 1\right]"


class stop_gradient(Atom):  # noqa: N801
    """Its operand as a number: what depends on it moves with it, but has no derivative through it.

    For a count between two sums whose terms are equal there, so that moving it changes neither.

    >>> stop_gradient(3), stop_gradient(sympy.Symbol("x"))
    (3, stop_gradient(x))
    """

    nargs = 1
    operation = "stop_gradient"
    directions = (1,)
    curvature = None

    @staticmethod
    def plain(count: Any) -> Any:
        """The operand."""
        return count

    @classmethod
    def value(cls, count: Any) -> Any:
        """The operand."""
        return count

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """That of the operand."""
        return parts[0]

    def _tex(self, printer: Any) -> str:
        return str(printer._print(self.args[0]))


ATOMS: tuple[type[Any], ...] = (
    Max,
    Min,
    ceil_div,
    log2,
    ring_share,
    bubble,
    less_one,
    complement,
    above_one,
    stop_gradient,
)
