"""Programs as source text to take away: a C header and source, a JavaScript module."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from .passes import prune
from .printers import c, javascript
from .printers.table import comment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .program import Program


def c_source(program: Program, outputs: Sequence[str], name: str) -> tuple[str, str]:
    """A self-contained C99 header and source, `NAME.h` and `NAME.c`, with the function `NAME(inputs, outputs)`.

    The enumerations of the header say what is where.

    Args:
        program: what to compute.
        outputs: of the program, in the order wanted.
        name: of the function, the files and all that they define.

    Returns:
        The header and the source.

    Raises:
        KeyError: an output that the program does not have.
        ValueError: a name that C cannot have, no output, or one that is named twice.
    """
    c.function_name(name)
    _check_outputs(outputs, name)
    wanted = prune(program, outputs)
    guard = name.upper()
    inputs = c.constants(f"{guard}_INPUT_", wanted.inputs)
    lines, values = c.straight(wanted, inputs)
    context = {
        "name": name,
        "guard": guard,
        "inputs": inputs,
        "outputs": c.constants(f"{guard}_OUTPUT_", outputs),
        "lines": lines,
        "values": values,
    }
    header, source = (_templates().get_template(f"c_{part}.j2").render(context) for part in ("header", "source"))
    return header, source


def javascript_module(program: Program, outputs: Sequence[str], name: str) -> str:
    """An ES module with `inputs` and `outputs`, lists of names, and `evaluate`, from an object to an object.

    Args:
        program: what to compute.
        outputs: of the program, in the order wanted.
        name: what the module's comment calls it.

    Raises:
        KeyError: an output that the program does not have.
        ValueError: no output, or one that is named twice.
    """
    _check_outputs(outputs, name)
    smaller = prune(program, outputs)
    lines, values = javascript.straight(smaller)
    return (
        _templates()
        .get_template("javascript.j2")
        .render(
            title=name,
            inputs=list(smaller.inputs),
            outputs=outputs,
            lines=lines,
            results=list(zip(outputs, values, strict=True)),
        )
    )


def _check_outputs(outputs: Sequence[str], name: str) -> None:
    if not outputs:
        raise ValueError(f"{name}: no outputs")
    for k, output in enumerate(outputs):
        if output in outputs[:k]:
            raise ValueError(f"the output {output!r} is named twice")


@cache
def _templates() -> Environment:
    found = Environment(  # programs, not pages  # nosec B701
        loader=PackageLoader(__package__), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # no escaping for HTML: every name passes one of these filters
    found.filters |= {
        "comment": comment,
        "c_string": c.string,
        "js_string": javascript.string,
        "js_key": javascript.key,
    }
    found.keep_trailing_newline = True
    return found
