"""Programs as source text to take away: a C header and source, a JavaScript module."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from .passes import prune
from .printers import c, javascript
from .printers.table import comment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .program import Program

_BLOCK_BYTES = 131_072
"""What the arrays of points computed together may take, so that they stay in a near cache."""


def c_source(
    program: Program,
    outputs: Sequence[str],
    name: str,
    *,
    columns: Sequence[str] | None = None,
    axes: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    minimise: str | None = None,
    constraints: Sequence[str] = (),
) -> tuple[str, str]:
    """A self-contained C99 header and source, `NAME.h` and `NAME.c`.

    `NAME` computes one point, `NAME_points` many, `NAME_grid` the product of axes with every value in the outermost
    loop that decides it, `NAME_argmin` the best point of that product without storing it. The enumerations of the
    header say what is where. With OpenMP the last three use all threads, and give the same answers.

    Args:
        program: what to compute.
        outputs: of the program, in the order wanted.
        name: of the function, the files and all that they define.
        columns: inputs that vary from point to point in `NAME_points`; by default all. None of them: no such function.
        axes: inputs that the grid's loops run over, in the order of its results.
        sizes: points by axis that the order of the loops is chosen for; any number works.
        minimise: the output that `NAME_argmin` minimises; by default the first.
        constraints: outputs of the program that have to be at least 0 where the minimum is.

    Returns:
        The header and the source.

    Raises:
        KeyError: an output, an axis or a column that the program does not have.
        ValueError: a name that C cannot have, no output, or an axis that is named twice.
    """
    c.function_name(name)
    for names, what in ((outputs, "output"), (axes, "axis"), (columns or (), "column")):
        _distinct(names, what)
    if not outputs:
        raise ValueError(f"{name}: no outputs")
    for varying in (*axes, *(columns or ())):
        program.inputs[varying]
    guard = name.upper()
    objective = outputs[0] if minimise is None else minimise
    whole = prune(program, list(dict.fromkeys([*outputs, objective, *constraints])))
    wanted = prune(whole, outputs)
    inputs = c.constants(f"{guard}_INPUT_", whole.inputs)
    varying_columns = list(inputs) if columns is None else list(columns)
    point, values = c.straight(wanted, inputs)
    context: dict[str, Any] = {
        "name": name,
        "guard": guard,
        "inputs": inputs,
        "outputs": c.constants(f"{guard}_OUTPUT_", outputs),
        "columns": c.constants(f"{guard}_COLUMN_", varying_columns),
        "axes": c.constants(f"{guard}_AXIS_", axes),
        "objective": objective,
        "constraints": constraints,
        "point": point,
        "values": values,
        "many": c.zipped(wanted, varying_columns, inputs),
    }
    if axes:
        grid = c.loops(wanted, axes, inputs, sizes=sizes, exact=constraints, stored=True)
        searched = prune(whole, list(dict.fromkeys([objective, *constraints])))
        least = c.loops(searched, axes, inputs, sizes=sizes, exact=constraints)
        feasible = " & ".join(f"({least.values[each]} >= 0.0)" for each in constraints)
        context |= {"grid": grid, "least": least, "feasible": feasible}
    arrays = len(outputs) + max(context[nest].arrays for nest in ("many", "grid", "least") if nest in context)
    context["size"] = max(16, min(512, _BLOCK_BYTES // 8 // arrays // 16 * 16))
    header, source = (_templates().get_template(f"c_{part}.j2").render(context) for part in ("header", "source"))
    return header, _indented(source)


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
    _distinct(outputs, "output")
    if not outputs:
        raise ValueError(f"{name}: no outputs")
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


def _distinct(names: Sequence[str], what: str) -> None:
    for k, name in enumerate(names):
        if name in names[:k]:
            raise ValueError(f"the {what} {name!r} is named twice")


@cache
def _templates() -> Environment:
    found = Environment(
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


def _indented(text: str) -> str:
    """C text with each line indented by the braces open before it; names in comments and strings hold none."""
    depth = 0
    lines = []
    for line in map(str.strip, text.splitlines()):
        at = depth - line.startswith("}")
        lines.append(line if line.startswith("#") or not line else "    " * at + line)
        depth += line.count("{") - line.count("}")
    return "\n".join(lines) + "\n"
