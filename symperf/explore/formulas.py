"""Which formulas the time of each operation is composed of, and their equations as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ..book.entry import entry
from ..book.equation import latex_blocks, unicode_lines
from ..book.markup import mathml
from ..common.errors import InputError
from ..formulas.language.named_calls import calls_in, name_calls
from ..infer.build import tree as inference_tree
from ..infer.structure import InferenceStructure
from ..operations.schedule import Idle, terms
from ..train.build import step_tree

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula
    from ..plans.structure import Structure

COLUMNS = 100
"""Of an equation in letters, where no MathML can be made."""
_SPACE = "{http://www.w3.org/1998/Math/MathML}"


def called(structure: Structure | InferenceStructure) -> dict[str, list[tuple[str, str]]]:
    """The formulas of each operation's time, by path: the outermost first, each with its arguments in words."""
    import sympy

    with name_calls():
        inference = isinstance(structure, InferenceStructure)
        tree = inference_tree(structure) if inference else step_tree(structure)  # type: ignore[arg-type]
        found: dict[str, list[tuple[str, str]]] = {}
        for path, leaf in terms(tree).items():
            if isinstance(leaf, Idle):
                continue
            calls = sorted(calls_in(leaf.time), key=lambda call: (-len(calls_in(call)), str(call)))
            names = {call: sympy.Symbol(f"{call.formula.name}()") for call in calls}
            found[path] = [
                (
                    call.formula.name,
                    ", ".join(
                        f"{name} = {argument.xreplace(names)}"
                        for name, argument in call.arguments.items()
                        if str(argument) != name
                    ),
                )
                for call in calls
            ]
        return found


def told(formula: Formula) -> dict[str, Any]:
    """What a page tells of a formula: title, sentence, source, and its equation as a tree of MathML, or as lines."""
    known = entry(formula.name)
    found = {"title": known.title, "sentence": known.sentence, "source": formula.source}
    try:
        return found | {"math": [_tree(ElementTree.fromstring(mathml(block, "block"))) for block in latex_blocks(formula)]}
    except InputError:  # latex2mathml is not installed
        return found | {"lines": unicode_lines(formula, COLUMNS)}


def _tree(element: ElementTree.Element) -> list[Any]:
    """An element as its name, attributes and children; a page makes elements of it, and reads no markup."""
    children: list[Any] = [element.text] if element.text else []
    for child in element:
        children.append(_tree(child))
        if child.tail:
            children.append(child.tail)
    return [element.tag.removeprefix(_SPACE), dict(element.attrib), children]
