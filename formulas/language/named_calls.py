"""Calls of formulas that stay calls, so that a cost can be read over the formulas that it is composed of.

A named call holds all that its formula's closed form depends on: the arguments, and then each symbol that the formula
reads from the vocabulary itself, such as a device's rate. So a substitution reaches inside it as it reaches inside the
closed form, which `definition` gives back.
"""

from __future__ import annotations

import contextlib
import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, TypeVar

import sympy

from .atoms import Atom
from .symbols import SYMBOLS, flop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .dimension import Dimension
    from .formula import Formula

P = ParamSpec("P")
T = TypeVar("T")

_NAMING: ContextVar[bool] = ContextVar("naming", default=False)


@contextlib.contextmanager
def name_calls(wanted: bool = True) -> Iterator[None]:
    """While this is open, a call of a formula gives a `NamedCall` instead of the closed form; or, `wanted` false, not.

    >>> from ..kernels.roofline import roofline_time
    >>> with name_calls():
    ...     roofline_time(*sympy.symbols("W Q F beta"))
    roofline_time(W, Q, F, beta)
    """
    token = _NAMING.set(wanted)
    try:
        yield
    finally:
        _NAMING.reset(token)


def are_calls_named() -> bool:
    """Whether a call of a formula gives a `NamedCall` now."""
    return _NAMING.get()


class NamedCall(Atom):
    """A formula of some arguments, not opened; each formula has a class of its own.

    Attributes:
        formula: the formula.
        read: the symbols that it reads beside its parameters; they stand after the arguments.
    """

    operation: ClassVar[str] = "formula"
    curvature: ClassVar[str | None] = None
    formula: ClassVar[Formula]
    read: ClassVar[tuple[Any, ...]]

    @classmethod
    def eval(cls, *args: Any) -> Any:  # noqa: ARG003
        """It stays as it is, of numbers too."""
        return None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by parameter."""
        return dict(zip(self.formula.parameters, self.args, strict=False))

    @property
    def replaced(self) -> dict[Any, Any]:
        """What stands for the symbols that the formula reads from the vocabulary, where it is not the symbol itself."""
        given = zip(self.read, self.args[len(self.formula.parameters) :], strict=True)
        return {symbol: arg for symbol, arg in given if arg != symbol and symbol != flop}

    def definition(self) -> Any:
        """The closed form of the arguments."""
        symbols = (SYMBOLS[name].symbol for name in self.formula.parameters)
        return self.formula.expression.xreplace(dict(zip((*symbols, *self.read), self.args, strict=True)))

    def dimension(self, parts: list[Dimension]) -> Dimension:  # noqa: ARG002
        """That of the formula, whose parameters' dimensions its own check holds."""
        return self.formula.dimension

    def _tex(self, printer: Any) -> str:
        return rf"{self.formula.glyph}\left({', '.join(map(printer._print, self.arguments.values()))}\right)"


CLASSES: Final[dict[str, type[NamedCall]]] = {}
"""The class of the calls of each formula that was called so, by name."""


def named_call(formula: Formula, arguments: dict[str, Any]) -> NamedCall:
    """A call of a formula; arguments by parameter."""
    if formula.name not in CLASSES:
        symbols = {SYMBOLS[name].symbol for name in formula.parameters}
        read = tuple(sorted(formula.expression.free_symbols - symbols, key=str))
        members = {"formula": formula, "read": read, "nargs": len(formula.parameters) + len(read)}
        CLASSES[formula.name] = type(formula.name, (NamedCall,), members)
    kind: Any = CLASSES[formula.name]
    given = [sympy.sympify(arguments[name], strict=True) for name in formula.parameters]
    call: NamedCall = kind(*given, *kind.read)
    return call


def calls_in(expr: Any) -> set[NamedCall]:
    """The named calls in an expression, also in the arguments of others."""
    return set(expr.atoms(NamedCall))


class Remembered(Generic[P, T]):
    """A function of a few hashable arguments whose last results are kept."""

    def __init__(self, build: Callable[P, T], maxsize: int) -> None:
        @functools.lru_cache(maxsize)
        def built(_: bool, *args: Any, **kwargs: Any) -> T:
            return build(*args, **kwargs)

        self._built: Any = built
        functools.update_wrapper(self, build)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result, built if it is not known."""
        found: T = self._built(are_calls_named(), *args, **kwargs)
        return found

    def cache_clear(self) -> None:
        """Forget all results."""
        self._built.cache_clear()


def remember_forms(maxsize: int) -> Callable[[Callable[P, T]], Remembered[P, T]]:
    """`functools.lru_cache` for closed forms: those with named calls are remembered apart from the others."""
    return lambda build: Remembered(build, maxsize)
