"""Which formulas the time of each operation is composed of, and their equations as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ..book.chapters import chapter_of
from ..book.entry import entry
from ..book.equation import latex_blocks, latex_line, unicode_lines
from ..book.markup import mathml
from ..book.references import reference
from ..book.render import ANCHORS
from ..common.artefacts import load_or_make
from ..common.errors import InputError
from ..infer.structure import InferenceStructure

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula
    from ..plans.structure import Structure

Calls = tuple[tuple[str, str], ...]
"""Formulas, the outermost first, each with its arguments in words."""
COLUMNS = 100
"""Of an equation in letters, where no MathML can be made."""
_SPACE = "{http://www.w3.org/1998/Math/MathML}"


@dataclass(frozen=True)
class Told:
    """What a page tells of an operation beside its numbers.

    Attributes:
        calls: formulas of its time, the outermost first, each with its arguments in words.
        summed: its time is the sum over the steps of a generation.
    """

    calls: Calls = ()
    summed: bool = False


def told_operations(structure: Structure | InferenceStructure) -> dict[str, Told]:
    """What is told of each operation, by path: from the cache folder, or from the schedule tree."""
    kind = f"told operations of {type(structure).__name__}"
    return load_or_make(kind, structure.key(), lambda: _read_operations(structure), _to_json, _from_json)


def _to_json(found: dict[str, Told]) -> dict[str, Any]:
    return {path: [told.calls, told.summed] for path, told in found.items()}


def _from_json(data: dict[str, Any]) -> dict[str, Told]:
    return {
        str(path): Told(tuple((str(name), str(given)) for name, given in calls), bool(summed))
        for path, (calls, summed) in data.items()
    }


def _read_operations(structure: Structure | InferenceStructure) -> dict[str, Told]:
    from ..formulas.language.named_calls import name_calls
    from ..infer.build import tree as inference_tree
    from ..operations.schedule import Idle, terms
    from ..train.build import step_tree

    with name_calls():
        tree = inference_tree(structure) if isinstance(structure, InferenceStructure) else step_tree(structure)
        return {
            path: Told(calls_of(leaf.time), leaf.summed)
            for path, leaf in terms(tree).items()
            if not isinstance(leaf, Idle)
        }


def calls_of(form: Any) -> Calls:
    """The formulas that a closed form calls, the outermost first."""
    import sympy

    from ..formulas.language.named_calls import calls_in

    calls = sorted(calls_in(form), key=lambda call: (-len(calls_in(call)), str(call)))
    names = {call: sympy.Symbol(f"{call.formula.name}()") for call in calls}
    given = (
        ", ".join(
            f"{name} = {argument.xreplace(names)}" for name, argument in call.arguments.items() if str(argument) != name
        )
        for call in calls
    )
    return tuple(zip((call.formula.name for call in calls), given, strict=True))


def told_formula(formula: Formula) -> dict[str, Any]:
    """What a page tells of a formula: title, sentence, source, and its equation as a tree of MathML, or as lines."""
    known, chapter = entry(formula.name), chapter_of(formula.module)
    found = {
        "title": known.title,
        "sentence": known.sentence,
        "source": reference(formula.source).text,
        "number": known.number,
        "chapter": chapter.title,
        "page": f"{chapter.name}.html#{ANCHORS['formula']}{formula.name}",
        "latex": latex_line(formula),
    }
    try:
        blocks = [mathml(block, "block") for block in latex_blocks(formula)]
    except InputError:  # latex2mathml is not installed
        return found | {"lines": unicode_lines(formula, COLUMNS)}
    return found | {"math": [tree_of(block) for block in blocks]}


def tree_of(markup: str) -> list[Any]:
    """MathML as [name, attributes if any, child, ...]; a page makes elements of it, and reads no markup."""
    return _tree(ElementTree.fromstring(markup))  # MathML of ours  # nosec B314


def _tree(element: ElementTree.Element) -> list[Any]:
    children: list[Any] = [element.text] if element.text else []
    for child in element:
        children.append(_tree(child))
        if child.tail:
            children.append(child.tail)
    return [element.tag.removeprefix(_SPACE), *([dict(element.attrib)] if element.attrib else []), *children]
