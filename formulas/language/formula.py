"""`@formula`: a cost formula is a pure function of expressions, checked when it is imported, listed in a registry.

A formula's parameters are names of the vocabulary in `symbols`; the device's rates it reads straight from there. Its
docstring gives the sentence, `Assumes:`, `Source:` and a doctest that prints the closed form; `Reference only:` says of
a textbook form why no prediction is composed of it. What a formula claims of dimension is checked here, on import; what
it claims of direction and curvature the test of the registry checks.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import sympy

from .dimension import Dimension, DimensionError, dimension_of
from .discipline import Judgement, judge, prove
from .named_calls import are_calls_named, name_calls, named_call
from .symbols import SYMBOLS, dimensions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")


@dataclass(frozen=True)
class Formula:
    """One registered formula: what it says, in what units, from where, and the claims it is tested against."""

    name: str
    glyph: str
    dimension: Dimension
    source: str
    page: str
    parameters: tuple[str, ...]
    expression: Any
    increasing: frozenset[str]
    decreasing: frozenset[str]
    curvature: str | None
    doc: str = field(repr=False)
    module: str = field(repr=False)
    function: Callable[..., Any] = field(repr=False, compare=False)

    @functools.cached_property
    def body(self) -> Any:
        """The closed form as it is written: the formulas that it calls stay calls (`named_calls`)."""
        with name_calls():
            return sympy.sympify(self.function(*(SYMBOLS[name].symbol for name in self.parameters)), strict=True)

    @property
    def sentence(self) -> str:
        """The first sentence of the docstring."""
        return " ".join(self.doc.split("\n\n")[0].split())

    @property
    def assumes(self) -> str:
        """The text of the docstring's `Assumes:` section."""
        return self._section("Assumes")

    @property
    def reference_only(self) -> str:
        """The text of the docstring's `Reference only:` section: why no prediction is composed of it."""
        return self._section("Reference only")

    @property
    def derivation(self) -> str:
        """The text of the docstring's `Source:` section."""
        return self._section("Source")

    def judgement(self) -> Judgement:
        """What the fold infers of the closed form."""
        return judge(self.expression)

    def proof(self, symbol: str) -> str:
        """The proof of the direction in one symbol, as text."""
        return prove(self.expression, SYMBOLS[symbol].symbol)

    def latex(self) -> str:
        """The closed form as a LaTeX equation, in the glyphs of the vocabulary."""
        from .symbols import latex

        arguments = ", ".join(SYMBOLS[name].glyph for name in self.parameters)
        return rf"{self.glyph}({arguments}) = {latex(self.expression)}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"

    def _section(self, title: str) -> str:
        found = re.search(rf"{title}:\s*(.+?)(?=\n\s*\n|\n\s*[A-Z][a-z]+:|\Z)", self.doc, re.S)
        return " ".join(found.group(1).split()) if found else ""


REGISTRY: dict[str, Formula] = {}
"""Every formula by name, in the order of import."""
_CALLED: ContextVar[dict[str, None] | None] = ContextVar("called", default=None)


_KNOWN: ContextVar[dict[Any, Any] | None] = ContextVar("known", default=None)
_NAME: ContextVar[Callable[[Any], Any] | None] = ContextVar("name", default=None)
_FORMS: dict[Any, Any] = {}
_MOST_FORMS = 20_000


def is_memoizing() -> bool:
    """Whether a formula of the same arguments is built once now, whoever asks."""
    return _KNOWN.get() is not None and _CALLED.get() is None and _NAME.get() is None and not are_calls_named()


@contextlib.contextmanager
def memoize_formulas() -> Iterator[None]:
    """While this is open, a formula of the same arguments is built once, and not again where it was open before."""
    if len(_FORMS) > _MOST_FORMS:
        _FORMS.clear()
    token = _KNOWN.set(_FORMS)
    try:
        yield
    finally:
        _KNOWN.reset(token)


@contextlib.contextmanager
def record_calls() -> Iterator[dict[str, None]]:
    """The names of the formulas that are called inside, also by other formulas; a page that is imported inside counts.

    >>> from ..kernels.roofline import roofline_time
    >>> with record_calls() as names:
    ...     _ = roofline_time(1, 2, 3, 4)
    >>> list(names)
    ['roofline_time', 'work_time', 'traffic_time']
    """
    names: dict[str, None] = {}
    token = _CALLED.set(names)
    try:
        yield names
    finally:
        _CALLED.reset(token)


@contextlib.contextmanager
def name_results(name: Callable[[Any], Any], known: dict[Any, Any]) -> Iterator[None]:
    """While this is open, what a formula gives is replaced by a name, so that expressions made of it stay small.

    Args:
        name: gives an expression a name, or leaves it.
        known: the results so far under such names, by formula and arguments.
    """
    tokens = _KNOWN.set(known), _NAME.set(name)
    try:
        yield
    finally:
        _KNOWN.reset(tokens[0])
        _NAME.reset(tokens[1])


def formula(
    *,
    glyph: str,
    dimension: Dimension,
    source: str,
    increasing: str = "",
    decreasing: str = "",
    curvature: str | None = None,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """Check a formula's dimension, register it, and leave it a plain function of expressions.

    Args:
        glyph: the LaTeX name of the quantity.
        dimension: what the closed form must be measured in.
        source: the key of a reference in `sources`.
        increasing: names of the symbols with which the closed form provably never falls.
        decreasing: likewise, never rises.
        curvature: the log-log curvature claimed, "affine", "convex", "concave" or None.

    Raises:
        DimensionError: the closed form does not add up to `dimension`.
        LookupError: a parameter is not in the vocabulary.

    """

    def register(function: Callable[P, Any]) -> Callable[P, Any]:
        name = function.__name__
        signature = inspect.signature(function)
        parameters = tuple(signature.parameters)
        for parameter in parameters:
            if parameter not in SYMBOLS:
                raise LookupError(f"formula {name}: parameter {parameter} is not in the vocabulary")
        plain = cast("Callable[..., Any]", function)
        with name_calls(False):
            expression = sympy.sympify(plain(*(SYMBOLS[name].symbol for name in parameters)), strict=True)
        try:
            found = dimension_of(expression, dimensions())
        except DimensionError as error:
            raise DimensionError(f"formula {name}: {error}") from None
        if found != dimension:
            raise DimensionError(f"formula {name}: claims {dimension}, is {found}")
        if name in REGISTRY:
            raise LookupError(f"formula {name} is defined twice")

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            called = _CALLED.get()
            if called is not None:
                called[name] = None
            if are_calls_named():
                given = signature.bind(*args, **kwargs)
                given.apply_defaults()
                return named_call(REGISTRY[name], given.arguments)
            exact = [sympy.sympify(a, strict=True) for a in args]
            named = {k: sympy.sympify(v, strict=True) for k, v in kwargs.items()}
            known = _KNOWN.get()
            if known is None or called is not None:
                return plain(*exact, **named)
            key = (plain, *exact, *named.items())
            if key not in known:
                found, stand_for = plain(*exact, **named), _NAME.get()
                known[key] = found if stand_for is None else stand_for(found)
            return known[key]

        REGISTRY[name] = Formula(
            name=name,
            glyph=glyph,
            dimension=dimension,
            source=source,
            page=function.__module__.rsplit(".", 1)[-1],
            parameters=parameters,
            expression=expression,
            increasing=frozenset(increasing.split()),
            decreasing=frozenset(decreasing.split()),
            curvature=curvature,
            doc=inspect.getdoc(function) or "",
            module=function.__module__,
            function=plain,
        )
        return cast("Callable[P, Any]", call)

    return register
