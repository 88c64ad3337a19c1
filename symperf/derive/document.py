"""Derivations in LaTeX: the lines with under-braces, the regime, the whole form, and the symbols with their values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..book.notation import SUM, WHOLE, Box
from ..book.prose import latex_name, latex_text
from ..formulas.language.symbols import SYMBOLS
from .condition_text import kind_sentences, zero_terms
from .conditions import readable
from .rows import latex_formulas, latex_rows, of_terms
from .whole import shown_definitions, used_formulas
from .writing import branch_boxes, label, latex_notation, latex_si, line_box, quantity_glyph, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..book.latex import Latex
    from ..evaluation.base_run import BaseRun
    from ..formulas.language.formula import Formula
    from .conditions import Condition
    from .derivation import Derivation

PAGE, SMALL_PAGE, COLUMN = 46.0, 52.0, 32.0
"""Em that fit a line: of the document written here, the same in small print, and of the class article as it is."""
TABLE_LINES = 40
"""Lines in one table of symbols; a `tabular` cannot break across pages."""
MEANING = 36
"""Characters of a symbol's sentence that fit one of them, at least."""
SHOWN_CONDITIONS = 12
UNDER = 0.4
"""Em of a letter below a brace."""
LONG = 10
"""Rows of an `align*` that may need to go on on another page."""
HEAD = r"""\documentclass[a4paper,fleqn]{article}
\usepackage{amsmath}
\setlength{\textwidth}{176mm}
\setlength{\oddsidemargin}{-8mm}
\setlength{\textheight}{262mm}
\setlength{\topmargin}{-24mm}
\setlength{\mathindent}{0pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\allowdisplaybreaks
\raggedbottom
\raggedright
\sloppy
\newcommand{\symbolrow}[4]{\parbox[t]{15mm}{\raggedright #1\strut}\parbox[t]{46mm}{\raggedright\texttt{#2}\strut}%
\hspace{2mm}\parbox[t]{88mm}{\raggedright #3\strut}\hspace{2mm}\parbox[t]{22mm}{\raggedleft #4\strut}\par}
\begin{document}
"""
CALLED = (
    r"Each formula that is called above or here, with the name under which \texttt{symperf formulas} shows what it "
    r"assumes and where it is from. Where its arguments are its own parameters, only its glyph stands."
)
KINDS = {"max": r"\geq", "min": r"\leq"}


def document(derivation: Derivation) -> str:
    """A whole document."""
    of = derivation.of.replace("_", " ") + (f" of {derivation.term}" if derivation.term else "")
    of = f"{of[0].upper()}{of[1:]}"
    run = derivation.run
    shown = shown_definitions(derivation)
    formulas = used_formulas(shown)
    used = [form for _, form in shown] + [line.expr for line in derivation.lines]
    text = [
        HEAD,
        rf"\section*{{{latex_text(of)}: {latex_text(run.model.name)} on {latex_text(run.system.name)}}}",
        f"{latex_text(repr(run))}.",
        _sentence(derivation)
        + f" Its value is {latex_si(derivation.value, derivation.unit)}.\n"
        + _lines(derivation, PAGE),
        *_notes(derivation),
        *_regime(derivation),
        r"\subsection*{The whole closed form}",
        _small(_align(latex_rows(shown, derivation.paths, derivation.of, derivation.term, SMALL_PAGE))),
        *_formulas(formulas, SMALL_PAGE),
        r"\subsection*{Symbols}",
        _symbol_list(derivation, _names(used, formulas)),
        r"\end{document}",
    ]
    return "\n\n".join(text) + "\n"


def _formulas(formulas: list[Formula], line: float) -> list[str]:
    """A section that defines each formula that is called, or nothing."""
    if not formulas:
        return []
    return [
        r"\subsection*{Formulas used}",
        CALLED,
        _small(_align(latex_formulas(formulas, line))),
    ]


def _small(display: str) -> str:
    return (
        f"\\begingroup\\small\\setlength{{\\jot}}{{2pt}}\\setlength{{\\abovedisplayskip}}{{2pt}}\n{display}\n\\endgroup"
    )


def _names(forms: Iterable[Any], formulas: Iterable[Formula]) -> set[str]:
    """The vocabulary's symbols in closed forms, and the parameters of formulas."""
    found = {symbol.name for form in forms for symbol in form.free_symbols} - {"flop"}
    found |= {name for formula in formulas for name in formula.parameters}
    return {name for name in found if name in SYMBOLS}


def fragment(derivation: Derivation) -> str:
    """The `align*` of the lines, which fits the class article as it is; of a metric, those of the time as well."""
    return _lines(derivation, COLUMN)


def _lines(derivation: Derivation, limit: float) -> str:
    rows = _rows(derivation, limit) + ([] if derivation.time is None else _rows(derivation.time, limit))
    return _align(rows) if len(rows) <= LONG else f"\\begingroup\\allowdisplaybreaks\n{_align(rows)}\n\\endgroup"


def display(derivation: Derivation) -> str:
    """The lines for a notebook."""
    rows = _rows(derivation, PAGE) + ([] if derivation.time is None else _rows(derivation.time, PAGE))
    inside = " \\\\\n".join(rows)
    return f"$\\begin{{aligned}}\n{inside}\n\\end{{aligned}}$"


def run_latex(run: BaseRun) -> str:
    """The whole time of a run over named terms and formulas, these, and tables of the symbols with values."""
    from .forms import time_forms
    from .whole import time_definitions

    steps = time_definitions(run)
    formulas = used_formulas(steps)
    rows = latex_rows(steps, time_forms(run).terms, "time", None, COLUMN)
    body = "\\begingroup\\allowdisplaybreaks\n" + _align(rows + latex_formulas(formulas, COLUMN)) + "\n\\endgroup"
    used = _names((form for _, form in steps), formulas)
    return "\n\n".join([body, *symbol_tables(run, used)]) + "\n"


def _align(rows: list[str]) -> str:
    inside = " \\\\\n".join(rows)
    return f"\\begin{{align*}}\n{inside}\n\\end{{align*}}"


def _rows(derivation: Derivation, limit: float) -> list[str]:
    """Rows of an `align*` with the lines under-braced, as many on a row as it holds."""
    notation = latex_notation()
    left = notation.glyph(quantity_glyph(derivation.of, derivation.term, latex=True))
    if not derivation.lines:
        return [f"& {left.text} = 0"]
    pieces = []
    for k, line in enumerate(derivation.kept):
        what = ", ".join(part for part in (line.resource or "", label(line.terms)) if part)
        sign = "" if line.value < 0 and k > 0 else "+"
        pieces.append((sign, line_box(line, notation), latex_text(f"{what}{': ' if what else ''}"), line.share))
    if derivation.dropped:
        count = len(derivation.dropped)
        number = latex_si(derivation.dropped_value, derivation.unit).strip("$")
        what = f"{count} line{'s' * (count > 1)} below {_percent(derivation.below)}: "
        pieces.append(("+", Box(number, 5.0, WHOLE), what, derivation.dropped_share))
    rows, room = [f"& {left.text} ="], limit - left.width - 1.9
    for k, (sign, box, what, share) in enumerate(pieces):
        body = rf"\underbrace{{{box.text}}}_{{\text{{{what}{_percent(share)}}}}}"
        letters = len(what.replace(r"\allowbreak{}", "").replace("\\", "")) + 6
        width = max(box.width, UNDER * letters) + 1.9
        if k and width > room:
            rows.append(r"& \quad {}")
            room = limit - 1.0
        rows[-1] += f" {sign} {body}" if k else f" {body}"
        room -= width
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
    notation = of_terms(latex_notation(derivation.paths), derivation.paths, derivation.of)
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
    where = label(condition.terms)
    tag = [(rf"\quad \text{{({latex_text(where)})}}", 1.0 + 0.5 * len(where))] if where else []
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


def _symbol_list(derivation: Derivation, used: Iterable[str]) -> str:
    """A row for each symbol that has a value, and the parameters of formulas one after another."""
    notation = latex_notation()
    cells = [_cells(derivation.run, name, notation, derivation.own) for name in SYMBOLS if name in set(used)]
    rows = [
        rf"\symbolrow{{{glyph}}}{{{latex_name(name)}}}{{{meaning}}}{{{value}}}"
        for glyph, name, meaning, value in cells
        if value
    ]
    formal = [
        rf"{glyph} \texttt{{{latex_name(name)}}}: {meaning.removesuffix('.')}"
        for glyph, name, meaning, value in cells
        if not value
    ]
    text = "\n".join(rows)
    more = f"\\par\\vspace{{4pt}}\nParameters of formulas: {'; '.join(formal)}.\\par\n" if formal else ""
    return f"\\begingroup\\footnotesize\\setlength{{\\parskip}}{{0pt}}\n{text}\n{more}\\endgroup"


def symbol_tables(run: BaseRun, used: Iterable[str]) -> list[str]:
    """Tables of symbols: glyph, sentence, value in SI units where it has one."""
    notation = latex_notation()
    rows = [_cells(run, name, notation, {}) for name in SYMBOLS if name in set(used)]
    lines = [rf"{glyph} & \raggedright {meaning} & {value} \\" for glyph, _, meaning, value in rows]
    parts: list[list[str]] = []
    held = TABLE_LINES
    for line, (_, name, _, _) in zip(lines, rows, strict=True):
        tall = math.ceil(len(SYMBOLS[name].sentence) / MEANING)
        if held + tall > TABLE_LINES:
            parts.append([])
            held = 0
        parts[-1].append(line)
        held += tall
    head, end = [r"\noindent\begin{tabular}{lp{58mm}r}", r"symbol & meaning & value \\ \hline"], [r"\end{tabular}"]
    return ["\n".join([*head, *part, *end]) for part in parts]


def _cells(run: BaseRun, name: str, notation: Latex, own: Mapping[str, float]) -> tuple[str, str, str, str]:
    """Glyph, name, sentence and value of a symbol, which the run binds, or is among `own`, or has none."""
    entry: Any = SYMBOLS[name]
    found = run.bound[name][0] if name in run.bound else own.get(name)
    value = "free" if name in run.free_names else "" if found is None else latex_si(found, unit_of(name))
    return f"${notation.box(entry.symbol).text}$", name, latex_text(entry.sentence), value
