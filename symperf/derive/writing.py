"""How derivations are written: glyphs, the order of factors, coefficients, and quantities in SI units."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from ..book.latex import Latex
from ..book.notation import PRODUCT, SUM, WHOLE, Box
from ..book.unicode import Unicode, columns
from ..common.vocabulary import unit
from ..formulas.language.symbols import SYMBOLS
from .forms import TIMES
from .monomials import exact_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..book.notation import Notation
    from .conditions import ConditionSide
    from .derivation import Line
    from .monomials import Number

ORDER = (
    "batch",
    "micro_batch",
    "num_layers",
    "sequence",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "tp",
    "pp",
    "dp",
    "vpp",
)
"""Symbols in the order of the Megatron papers' products; the others follow as the vocabulary lists them."""
QUANTITIES = {
    "time": "T",
    "memory": "M",
    "mfu": "MFU",
    "hfu": "HFU",
    "tokens": "N_{tokens}",
    "devices": "D",
    "parameters": "N",
    "model_flops": "W_{model}",
    "hardware_flops": "W_{hardware}",
    "tokens_per_s": "R_{tokens}",
    "tokens_per_s_per_device": "R_{tokens/device}",
    "flops_per_s_per_device": "R_{FLOP/device}",
    "device_seconds": "C_{device}",
}
"""Glyphs of quantities; any other is its name."""
LARGEST_DENOMINATOR, LARGEST_NUMERATOR = 64, 10**5
"""A coefficient beyond these is written as a decimal."""
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


def latex_notation(paths: Iterable[str] = ()) -> Latex:
    """LaTeX in the vocabulary's glyphs; terms are tau with their path."""
    return Latex(_glyphs() | {_stand_in(path): _tau(path) for path in paths}, _order())


def unicode_notation(paths: Iterable[str] = ()) -> Unicode:
    """Unicode, likewise."""
    return Unicode(_glyphs() | {_stand_in(path): rf"\tau[{path}]" for path in paths}, _order())


def _stand_in(path: str) -> Any:
    return sympy.Symbol(path, nonnegative=True)


def _glyphs() -> dict[Any, str]:
    return {entry.symbol: entry.glyph for entry in SYMBOLS.every().values()} | {
        symbol: "T" if term is None else f"T_{{{term}}}" for symbol, term in TIMES.items()
    }


def _order() -> list[Any]:
    return [SYMBOLS[name].symbol for name in ORDER]


def _tau(path: str) -> str:
    return rf"\tau_{{{path_index(path)}}}"


def path_index(path: str) -> str:
    r"""A path as an index of LaTeX mathematics.

    >>> print(path_index("layer/mlp/up/backward_input"))
    layer/mlp/up/backward\,input
    """
    return path.replace("_", r"\,")


def quantity_glyph(of: str, term: str | None, *, latex: bool) -> str:
    """The glyph of a quantity, or of a part of it, as a notation takes it."""
    base = QUANTITIES.get(of, path_index(of) if latex else of)
    if term is None:
        return base
    return f"{base}_{{{path_index(term) if latex else term}}}"


# --- numbers


def is_plain(value: Number) -> bool:
    """Whether a coefficient is written as a fraction."""
    return (
        isinstance(value, Fraction)
        and value.denominator <= LARGEST_DENOMINATOR
        and abs(value.numerator) <= LARGEST_NUMERATOR
    )


def decimal(value: float) -> str:
    """A number to four digits.

    >>> decimal(1.09375), decimal(1.5399e12)
    ('1.094', '1.54e+12')
    """
    return f"{value:.4g}"


def latex_decimal(value: float) -> str:
    r"""The same in LaTeX.

    >>> print(latex_decimal(1.5399e12))
    1.54 \cdot 10^{12}
    """
    mantissa, _, exponent = decimal(value).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def monomial_box(coefficient: Number, rounding: float, monomial: Any, notation: Notation) -> Box:
    """A monomial: its rounding factor, its coefficient and its symbols."""
    whole = notation.box(monomial)
    if whole.level == SUM:  # a sum that stays in one piece, such as the number of decode steps
        inside, factor = notation.brackets(whole), float(coefficient) * rounding
        return inside if abs(factor - 1) < 1e-9 else _times(factor, inside, notation)
    if is_plain(coefficient):
        whole = notation.box(exact_number(coefficient) * monomial)
        return whole if abs(rounding - 1) < 1e-9 else _times(rounding, whole, notation)
    exact = float(coefficient) * rounding
    over, under = sympy.fraction(monomial)
    if over != 1:
        return _times(exact, notation.box(monomial), notation)
    number = _number(exact, notation)
    return number if under == 1 else notation.fraction(number, notation.box(under))


def line_box(line: Line, notation: Notation) -> Box:
    """A line of a derivation."""
    return monomial_box(line.coefficient, line.rounding, line.monomial, notation)


def branch_boxes(branch: ConditionSide, notation: Notation, *, signed: bool = True) -> list[Box]:
    """The leading monomials of a branch, with their signs or without, and an ellipsis where there are more."""
    boxes = [
        monomial_box(coefficient if signed or coefficient > 0 else -coefficient, rounding, monomial, notation)
        for coefficient, rounding, monomial in branch.leading
    ] or [notation.number(0)]
    more = Box(r"\cdots" if isinstance(notation, Latex) else "…", 1.2, WHOLE)
    return [*boxes, more] if branch.more else boxes


def branch_text(branch: ConditionSide, notation: Notation) -> str:
    """The same as one sum; what is alone needs no brackets."""
    if [part[:2] for part in branch.leading] == [(1, 1.0)] and not branch.more:
        return notation.box(branch.leading[0][2]).text
    signs: list[int] = [1 if coefficient > 0 else -1 for coefficient, _, _ in branch.leading]
    boxes = branch_boxes(branch, notation, signed=False)
    return notation.sum(list(zip([*signs, *[1] * (len(boxes) - len(signs))], boxes, strict=True))).text


def _number(value: float, notation: Notation) -> Box:
    if isinstance(notation, Latex):
        text = latex_decimal(value)
        return Box(text, 0.55 * len(text), WHOLE)
    return Box(decimal(value), len(decimal(value)), WHOLE)


def _times(value: float, box: Box, notation: Notation) -> Box:
    number = _number(value, notation)
    if isinstance(notation, Latex):
        return Box(rf"{number.text} \cdot {box.text}", number.width + box.width + 1.0, PRODUCT)
    text = f"{number.text} · {box.text}"
    return Box(text, columns(text), PRODUCT)


# --- quantities with units


def si(value: float, unit: str) -> str:
    """A value in SI units, with the prefix that suits its size.

    >>> si(1.555e12, "B/s"), si(3.85e-6, "s"), si(96, ""), si(6.4e10, "B"), si(0.45, "1")
    ('1.555 TB/s', '3.85 us', '96', '64 GB', '0.45')
    """
    if unit in ("", "1") or value == 0:
        return f"{value:.12g}" if float(value).is_integer() and abs(value) < 1e12 else f"{value:.4g}"
    if unit == "s":
        size, prefix = next(((s, p) for s, p in SMALL if abs(value) >= s), SMALL[-1])
    else:
        size, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), (1.0, ""))
    return f"{value / size:.4g} {prefix}{unit}"


def latex_si(value: float, unit: str) -> str:
    r"""The same in LaTeX.

    >>> print(latex_si(3.85e-6, "s"))
    $3.85\,\mathrm{\mu s}$
    """
    number, _, rest = si(value, unit).partition(" ")
    mantissa, _, exponent = number.partition("e")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    if not rest:
        return f"${text}$"
    rest = rf"\mu {rest[1:]}" if rest in ("us",) else rest
    return rf"${text}\,\mathrm{{{rest}}}$"


def quantity_unit(of: str) -> str:
    """The SI unit of a quantity."""
    own = {"time_per_token": "s", "sequence_cache": "B", "prefill_flops": "FLOP", "device_seconds": "s"}
    own |= {"energy": "J", "cost": "USD"}
    return own.get(of) or unit(of) or "1"


def unit_of(name: str) -> str:
    """The SI unit of a symbol."""
    return str(SYMBOLS[name].dimension)


def label(terms: Iterable[str]) -> str:
    """What a group of terms is called: the folder that they share, or their first folders.

    >>> label(["layer/mlp/up/forward", "layer/mlp/down/forward"]), label(["layer/mlp/up", "head/logits"])
    ('layer/mlp', 'layer, head')
    >>> label(["layer/a", "head/b", "embedding/c", "optimizer", "pipeline/send"])
    'layer, head, embedding and 2 more'
    """
    paths = [path.split("/") for path in terms if path]
    if not paths:
        return ""
    shared = []
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    if shared:
        return "/".join(shared)
    tops = list(dict.fromkeys(path[0] for path in paths))
    more = f" and {len(tops) - 3} more" if len(tops) > 4 else ""
    return ", ".join(tops[: 3 if more else 4]) + more
