"""Which closed forms the answers of a page have: equations over formulas, and the formulas that they call."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..book.equation import UNICODE_MARKS
from ..book.latex import MARKS, aligned
from ..book.layout import Row, Spacing, lay_out
from ..book.markup import mathml
from ..common.artefacts import load_or_make
from ..common.errors import InputError
from ..infer.structure import InferenceStructure
from .formulas import Calls, calls_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..plans.structure import Structure

LARGEST = 500
"""Nodes of an expression that is set at all: setting one of ten thousand takes half a minute."""
LONGEST = 1500
"""Characters of LaTeX of an equation that a page shows; longer ones are told by the formulas that they call."""
PAGE = Spacing(line=42.0, step=1.0)
TERMINAL = Spacing(line=100.0, step=4.0)
ROW_END = " \\\\[4pt]\n"


@dataclass(frozen=True)
class Answer:
    """What a page tells of an answer beside its number.

    Attributes:
        latex: the right side of its equation, on rows; empty where it is too long.
        lines: the same in letters.
        calls: formulas that it calls, as of an operation.
    """

    latex: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    calls: Calls = ()


def told_answers(structure: Structure | InferenceStructure) -> dict[str, Answer]:
    """What is told of each answer, by the name of its output: from the cache folder, or from the closed forms."""
    kind = f"told answers of {type(structure).__name__}"
    return load_or_make(kind, structure.key(), lambda: _read(structure), _to_json, _from_json)


def equation_of(answer: Answer) -> dict[str, Any]:
    """An equation as a tree of MathML with its LaTeX, or as lines where latex2mathml is not installed; or nothing."""
    if not answer.latex:
        return {}
    text = "\n".join(answer.latex)
    if len(answer.latex) > 1:
        text = "\\begin{aligned}\n" + ROW_END.join(answer.latex) + "\n\\end{aligned}"
    try:
        return {"math": [tree_of(mathml(text, "block"))], "latex": text}
    except InputError:
        return {"lines": list(answer.lines), "latex": text}


def _to_json(found: dict[str, Answer]) -> dict[str, Any]:
    return {name: [answer.latex, answer.lines, answer.calls] for name, answer in found.items()}


def _from_json(data: dict[str, Any]) -> dict[str, Answer]:
    return {
        str(name): Answer(
            tuple(map(str, latex)), tuple(map(str, lines)), tuple((str(one), str(given)) for one, given in calls)
        )
        for name, (latex, lines, calls) in data.items()
    }


def _read(structure: Structure | InferenceStructure) -> dict[str, Answer]:
    from ..formulas.language.named_calls import name_calls
    from ..formulas.language.symbols import strip_units

    with name_calls():
        forms = _of_inference(structure) if isinstance(structure, InferenceStructure) else _of_training(structure)
        return {name: _answer(strip_units(form)) for name, form in forms.items()}


def _answer(form: Any) -> Answer:
    import sympy

    from ..derive.writing import latex_notation, unicode_notation

    notation, calls = latex_notation(), calls_of(form)
    nodes = sum(1 for _ in itertools.islice(sympy.preorder_traversal(form), LARGEST + 1))
    timed = any(symbol.name.startswith("path/") for symbol in form.free_symbols)
    if timed or nodes > LARGEST or len(notation.box(form).text) > LONGEST:
        return Answer(calls=calls)
    rows = lay_out(form, notation.glyph("Q"), notation, PAGE, MARKS)
    letters = unicode_notation()
    lines = lay_out(form, letters.glyph("Q"), letters, TERMINAL, UNICODE_MARKS)
    latex = tuple(aligned(rows)) if len(rows) > 1 else (rows[0].text,)
    return Answer(latex, tuple(_lines(lines)), calls)


def _lines(rows: Iterable[Row]) -> Iterable[str]:
    return (f"{'    ' * row.depth}{row.text.strip()}" for row in rows)


def _stand_in(leaf: Any) -> Any:
    import sympy

    return sympy.Symbol(f"path/{leaf.path}", nonnegative=True)


def _of_training(structure: Structure) -> dict[str, Any]:
    import sympy

    from ..operations.schedule import time_of
    from ..train.build import metrics, step_tree
    from ..train.memory.footprint import footprint
    from ..train.memory.reserved import reserved_terms

    held = footprint(structure)
    beside = reserved_terms(structure, sympy.Symbol("activations", nonnegative=True))
    answers = metrics(structure, sympy.Symbol("T", positive=True))
    kept = ("tokens_per_s", "tokens_per_s_per_device", "mfu", "hfu", "devices")
    return (
        {"time": time_of(step_tree(structure), _stand_in)}
        | {name: answers[name] for name in kept}
        | {f"memory/{name}": form for name, form in held.items()}
        | {f"beside/{name}": form for name, form in beside.items()}
    )


def _of_inference(structure: InferenceStructure) -> dict[str, Any]:
    import sympy

    from ..infer.build import metrics, trees
    from ..infer.footprint import footprint
    from ..operations.schedule import sequence as in_sequence
    from ..operations.schedule import time_of

    each = trees(structure)
    times = {"prefill": time_of(each["prefill"], _stand_in)}
    if structure.generates:
        times["time_per_token"] = time_of(each["decode"], _stand_in)
    times["time"] = time_of(in_sequence(*each.values()), _stand_in)
    prefill, step, time = (sympy.Symbol(name, positive=True) for name in ("T_prefill", "T_token", "T"))
    answers = metrics(structure, prefill, step, time)
    kept = ("tokens_per_s", "tokens_per_s_per_device", "prefill_mfu", "devices")
    held = footprint(structure)
    return times | {name: answers[name] for name in kept} | {f"memory/{name}": form for name, form in held.items()}
