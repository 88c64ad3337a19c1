"""Breaks an equation into lines that fit: parts that are too wide, or that occur twice, get names of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

if TYPE_CHECKING:
    from .notation import Box, Notation

PART = "\0part"
"""Begins the names of symbols that stand for parts: no other is called so, and they always sort the same."""
REPEATED_SHARE = 0.18
"""A part that occurs more than once is named if it is wider than this share of a line."""


@dataclass(frozen=True)
class DefinitionLine:
    """One definition: `left = body`, or what is on the right on lines of its own.

    Attributes:
        left: the quantity.
        kind: "plain" (one part), "sum" (signed terms), "max" or "min".
        parts: what stands on lines of their own, with their signs; all signs but those of a sum are +1.
        below: whether the right side begins on a new line.
    """

    left: Box
    kind: str
    parts: tuple[tuple[int, Box], ...]
    below: bool


@dataclass(frozen=True)
class Spacing:
    """Widths in the notation's unit: of a line, and of what stands before the parts of each kind.

    Attributes:
        line: the whole line.
        equals: an equals sign.
        indent: of a right side that begins below its left side.
        stack: what a stack of parts takes beside the widest of them.
    """

    line: float
    equals: float
    indent: float
    stack: float


def lay_out(expr: Any, left: Box, notation: Notation, spacing: Spacing, glyph: str = "X") -> list[DefinitionLine]:
    """The lines of `left = expr`, and then those of the parts that were named, in the order of their names.

    Args:
        expr: the right side.
        left: the left side.
        notation: writes the parts; the names are added to it.
        spacing: what fits.
        glyph: of the names, which are numbered from 1.
    """
    layout = _Layout(notation, spacing, glyph)
    layout.waiting.append((left, expr))
    lines = []
    while layout.waiting:
        lines.append(layout.line(*layout.waiting.pop(0)))
    return lines


class _Layout:
    def __init__(self, notation: Notation, spacing: Spacing, glyph: str) -> None:
        self.notation, self.spacing, self.glyph = notation, spacing, glyph
        self.waiting: list[tuple[Box, Any]] = []
        self.names: dict[Any, Any] = {}
        self.undefined: dict[Any, Any] = {}

    def width(self, expr: Any) -> float:
        return self.notation.box(expr).width

    def rank(self, expr: Any) -> tuple[float, str]:
        """By width; parts of one width by their text, as SymPy's own order of them can change between processes."""
        box = self.notation.box(expr)
        return (box.width, box.text)

    def line(self, left: Box, expr: Any) -> DefinitionLine:
        expr = expr.xreplace({part: name for part, name in self.names.items() if part != expr})
        short = left.width + self.spacing.equals <= self.spacing.line / 4
        beside = self.spacing.line - left.width - self.spacing.equals
        if self.width(expr) <= beside:
            return self.plain(left, expr, below=False)
        room = beside if short else self.spacing.line - self.spacing.indent - self.spacing.equals
        if self.width(expr) <= room:
            return self.plain(left, expr, below=not short)
        expr = self.without_repeats(expr)
        kind = "sum" if expr.is_Add else getattr(expr, "operation", "")
        if self.width(expr) <= room or kind not in ("sum", "max", "min"):
            expr = self.narrowed(expr, room)
            return self.plain(left, expr, below=not short and self.width(expr) > beside)
        parts = [self.narrowed(arg, room - self.spacing.stack) for arg in self.ordered(expr)]
        if self.width(whole := expr.func(*parts)) <= room:
            return self.plain(left, whole, below=not short and self.width(whole) > beside)
        self.number(parts)
        signed = [self.notation.signed(part) if kind == "sum" else (1, self.notation.box(part)) for part in parts]
        return DefinitionLine(left, kind, tuple(signed), not short)

    def plain(self, left: Box, expr: Any, below: bool) -> DefinitionLine:
        self.number([expr])
        return DefinitionLine(left, "plain", ((1, self.notation.box(expr)),), below)

    def ordered(self, expr: Any) -> list[Any]:
        return self.notation.terms(expr) if expr.is_Add else list(expr.args)

    def narrowed(self, expr: Any, room: float) -> Any:
        """The expression with its widest parts named, until it fits."""
        if self.width(expr) <= room:
            return expr
        if getattr(expr, "operation", "") in ("max", "min"):
            return self.named(expr)
        while self.width(expr) > room:
            inner = [arg for arg in expr.args if arg.args and not arg.is_Number]
            if not inner:
                return self.halved(expr, room)
            widest = max(inner, key=self.rank)
            expr = expr.xreplace({widest: self.named(widest)})
        return expr

    def halved(self, expr: Any, room: float) -> Any:
        """A flat sum or product of many symbols, its second half named; left as it is if it has no halves."""
        divisible = expr.is_Add or expr.is_Mul or getattr(expr, "operation", "") in ("max", "min")
        if len(expr.args) < 3 or not divisible:
            return expr
        half = len(expr.args) // 2
        rest = expr.func(*expr.args[half:])
        return self.narrowed(expr.func(*expr.args[:half], self.named(rest)), room)

    def named(self, part: Any) -> Any:
        """The symbol that stands for a part."""
        if part not in self.names:
            symbol = sympy.Symbol(f"{PART}{len(self.names):04}", nonnegative=True)
            self.names[part] = symbol
            self.undefined[symbol] = part
            self.notation.name(symbol, f"{self.glyph}_{{{1000 + len(self.names)}}}")
        return self.names[part]

    def number(self, parts: list[Any]) -> None:
        """Number the names that are new here, in the order of reading, and let their definitions follow."""
        texts = " ".join(self.notation.box(part).text for part in parts)
        used = {symbol for part in parts for symbol in part.free_symbols if symbol in self.undefined}
        for symbol in sorted(used, key=lambda one: texts.find(self.notation.box(one).text)):
            glyph = f"{self.glyph}_{{{len(self.names) - len(self.undefined) + 1}}}"
            self.notation.name(symbol, glyph)
            self.waiting.append((self.notation.glyph(glyph), self.undefined.pop(symbol)))

    def without_repeats(self, expr: Any) -> Any:
        """The expression with every wide part that occurs more than once named, the widest first."""
        while repeated := self.repeated(expr):
            widest = max(repeated, key=self.rank)
            expr = expr.xreplace({widest: self.named(widest)})
        return expr

    def repeated(self, expr: Any) -> list[Any]:
        seen: dict[Any, int] = {}
        for node in sympy.preorder_traversal(expr):
            if node.args and not node.is_Number:
                seen[node] = seen.get(node, 0) + 1
        least = REPEATED_SHARE * self.spacing.line
        return [node for node, count in seen.items() if count > 1 and self.width(node) > least]
