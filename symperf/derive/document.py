"""Derivations in LaTeX: the lines with under-braces, the regime, the whole form, and the symbols with their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..book.notation import SUM, Box
from ..book.prose import latex_text
from ..formulas.language.symbols import SYMBOLS
from .condition_text import kind_sentences, zero_terms
from .conditions import readable
from .rows import latex_rows
from .whole import definitions
from .writing import branch_boxes, label, latex_notation, latex_si, line_box, quantity_glyph, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..book.latex import Latex
    from ..evaluation.base_run import BaseRun
    from .conditions import Condition
    from .derivation import Derivation

PAGE, COLUMN = 45.0, 32.0
"""Em that fit a line: of the document written here, and of the class article as it is."""
TABLE_ROWS = 26
"""Symbols in one table; a `tabular` cannot break across pages."""
SHOWN_CONDITIONS = 24
LONG = 10
"""Rows of an `align*` that may need to go on on another page."""
HEAD = r"""\documentclass{article}
\usepackage{amsmath}
\setlength{\textwidth}{170mm}
\setlength{\oddsidemargin}{-5mm}
\setlength{\textheight}{235mm}
\setlength{\topmargin}{-16mm}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\allowdisplaybreaks
\raggedbottom
\raggedright
\sloppy
\begin{document}
"""
KINDS = {"max": r"\geq", "min": r"\leq"}


def document(derivation: Derivation) -> str:
    """A whole document."""
    of = derivation.of.replace("_", " ") + (f" of {derivation.term}" if derivation.term else "")
    run = derivation.run
    unit = derivation.unit
    text = [
        HEAD,
        rf"\section*{{{latex_text(of)}: {latex_text(run.model.name)} on {latex_text(run.system.name)}}}",
        f"{latex_text(repr(run))}.",
        _sentence(derivation) + f" Its value is {latex_si(derivation.value, unit)}.\n" + fragment(derivation),
        *_notes(derivation),
        *_regime(derivation),
        r"\subsection*{The whole closed form}",
        whole(derivation, PAGE),
        r"\subsection*{Symbols}",
        *symbol_tables(run, _used_names(derivation), names=True, own=derivation.own),
        r"\end{document}",
    ]
    return "\n\n".join(text) + "\n"


def fragment(derivation: Derivation) -> str:
    """The `align*` of the lines; of a metric, those of the time as well."""
    rows = _rows(derivation)
    if derivation.time is not None:
        rows += _rows(derivation.time)
    return _align(rows) if len(rows) <= LONG else f"\\begingroup\\allowdisplaybreaks\n{_align(rows)}\n\\endgroup"


def display(derivation: Derivation) -> str:
    """The lines for a notebook."""
    rows = _rows(derivation) + (_rows(derivation.time) if derivation.time is not None else [])
    inside = " \\\\\n".join(rows)
    return f"$\\begin{{aligned}}\n{inside}\n\\end{{aligned}}$"


def whole(derivation: Derivation, line: float) -> str:
    """The `align*` of the whole closed form with named parts."""
    return _align(latex_rows(definitions(derivation), derivation.paths, derivation.of, derivation.term, line))


def run_latex(run: BaseRun) -> str:
    """The whole time of a run over named terms and the form of each, and tables of its symbols with values."""
    from .forms import time_forms
    from .whole import time_definitions

    steps = time_definitions(run)
    rows = latex_rows(steps, time_forms(run).terms, "time", None, COLUMN)
    used = {symbol.name for _, form in steps for symbol in form.free_symbols if symbol.name in SYMBOLS}
    body = "\\begingroup\\allowdisplaybreaks\n" + _align(rows) + "\n\\endgroup"
    return "\n\n".join([body, *symbol_tables(run, used, names=False)]) + "\n"


def _align(rows: list[str]) -> str:
    inside = " \\\\\n".join(rows)
    return f"\\begin{{align*}}\n{inside}\n\\end{{align*}}"


def _rows(derivation: Derivation) -> list[str]:
    notation = latex_notation()
    left = notation.glyph(quantity_glyph(derivation.of, derivation.term, latex=True)).text
    rows = []
    for k, line in enumerate(derivation.kept):
        what = ", ".join(part for part in (line.resource or "", label(line.terms)) if part)
        text = rf"{latex_text(what)}{': ' if what else ''}{_percent(line.share)}"
        body = rf"\underbrace{{{line_box(line, notation).text}}}_{{\text{{{text}}}}}"
        negative = line.value < 0 and k > 0
        rows.append(rf"& {left} = {body}" if k == 0 else rf"& \quad {{}} {'' if negative else '+'} {body}")
    if not derivation.lines:
        rows.append(f"& {left} = 0")
    if derivation.dropped:
        count = len(derivation.dropped)
        text = (
            rf"{count} line{'s' * (count > 1)} below {_percent(derivation.below)}: {_percent(derivation.dropped_share)}"
        )
        number = latex_si(derivation.dropped_value, derivation.unit).strip("$")
        rows.append(rf"& \quad {{}} + \underbrace{{{number}}}_{{\text{{{text}}}}}")
    return rows


def _percent(share: float) -> str:
    return rf"{100 * share:.3g}\,\%"


def _sentence(derivation: Derivation) -> str:
    free = [rf"\texttt{{{latex_text(name)}}}" for name in derivation.free]
    if free:
        return f"As a function of {', '.join(free)}, inside the regime of the values below."
    return "Inside the regime of the values below."


def _notes(derivation: Derivation) -> list[str]:
    notation = latex_notation()
    zeros = zero_terms(derivation, notation)
    found = [f"Zero here: {'; '.join(zeros)}."] if zeros else []
    relations = [f"${notation.box(s).text} = {notation.box(e).text}$" for s, e in derivation.relations.items()]
    if relations:
        found.append(f"Put in, as they hold exactly for this model: {', '.join(relations)}.")
    if any(abs(line.rounding - 1) > 1e-9 for line in derivation.kept):
        found.append(
            "A factor before a coefficient is what rounding up adds: partly filled tiles and waves, and shares that do "
            "not divide."
        )
    if derivation.folded and not derivation.free:
        names = [
            rf"${notation.box(SYMBOLS[n].symbol).text} = {latex_si(derivation.values[n], unit_of(n)).strip('$')}$"
            for n in derivation.folded
            if n in derivation.run.compiled.program.inputs
        ]
        found.append(f"In the coefficients: {', '.join(names)}.")
    return found


def _regime(derivation: Derivation) -> list[str]:
    notation = latex_notation(derivation.paths)
    shown = readable(derivation.conditions)
    if not shown:
        return []
    rows: list[str] = []
    for condition in shown[:SHOWN_CONDITIONS]:
        rows += _condition_rows(condition, notation)
    more = len(shown) - SHOWN_CONDITIONS
    text = [r"\subsection*{The regime}", "The lines hold while, the nearest to a change first,\n" + _align(rows)]
    text += [f"and {more} more."] if more > 0 else []
    return [*text, *(f"{each[0].upper()}{each[1:]}." for each in kind_sentences(derivation, notation))]


def _condition_rows(condition: Condition, notation: Latex) -> list[str]:
    where = latex_text(label(condition.terms))
    tag = [(rf"\quad \text{{({where})}}", 2.0 + 0.55 * len(where))] if where else []
    sides = [("", branch_boxes(condition.active, notation))]
    if condition.kind == "present":
        sides[0][1].append(Box("{} > 1" if condition.holds else "{} = 1", 2.5, SUM))
    else:
        sides += [(KINDS.get(condition.kind, r"\leq"), branch_boxes(other, notation)) for other in condition.others]
    pieces: list[tuple[str, float]] = []
    for k, (sign, boxes) in enumerate(sides):
        for n, box in enumerate(boxes):
            if k > 1 and n == 0:  # a comma ends the side before
                pieces[-1] = (f"{pieces[-1][0]},", pieces[-1][1])
            first = (r"\quad " if k > 1 else "") + sign
            before = first if n == 0 else "" if box.level == SUM else "+"
            pieces.append((f"{{}} {before} {box.text}" if before else box.text, box.width + 1.6 + 1.2 * (k > 1)))
    return _packed_rows(pieces + tag)


def _packed_rows(pieces: list[tuple[str, float]]) -> list[str]:
    """Rows of an `align*` that hold pieces as wide as said."""
    rows, room = ["&"], PAGE
    for text, width in pieces:
        if width > room and rows[-1] != "&":
            rows.append(r"& \qquad")
            room = PAGE - 2.0
        rows[-1] += f" {text}"
        room -= width
    return rows


def _used_names(derivation: Derivation) -> set[str]:
    found = {symbol.name for line in derivation.lines for symbol in line.expr.free_symbols}
    for _, form in definitions(derivation):
        found |= {symbol.name for symbol in form.free_symbols}
    return {name for name in found if name in SYMBOLS}


def symbol_tables(
    run: BaseRun, used: Iterable[str], *, names: bool, own: Mapping[str, float] | None = None
) -> list[str]:
    """Tables of symbols: glyph, name if asked for, sentence, value in SI units.

    Args:
        run: that gives the values.
        used: names of the symbols.
        names: whether they are told.
        own: values that the run does not have.
    """
    notation = latex_notation()
    values = {name: value for name, (value, _) in run.bound.items()} | dict(own or {})
    rows = [_symbol_row(run, name, notation, values, names=names) for name in SYMBOLS if name in set(used)]
    width = "65mm" if names else "58mm"
    head = r"symbol & name & meaning & value" if names else "symbol & meaning & value"
    columns = f"l{'l' * names}p{{{width}}}r"
    return [
        "\n".join(
            [
                rf"\noindent\begin{{tabular}}{{{columns}}}",
                rf"{head} \\ \hline",
                *rows[k : k + TABLE_ROWS],
                r"\end{tabular}",
            ]
        )
        for k in range(0, len(rows), TABLE_ROWS)
    ]


def _symbol_row(run: BaseRun, name: str, notation: Latex, values: Mapping[str, float], *, names: bool) -> str:
    entry: Any = SYMBOLS[name]
    value = "free" if name in run.free_names else latex_si(values[name], unit_of(name))
    cells = [f"${notation.box(entry.symbol).text}$"]
    cells += [rf"\texttt{{{latex_text(name)}}}"] if names else []
    cells += [rf"\raggedright {latex_text(entry.sentence)}", value]
    return " & ".join(cells) + r" \\"
