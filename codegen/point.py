"""One point at a time in plain Python: a generated function of floats that needs neither NumPy nor a compiler."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .adjoint import PREFIX, gradient
from .passes import prune
from .printers.python import point_module
from .store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .program import Program

    Point = tuple[float, ...]


class PointKernel:
    """Outputs of a program at one point, bit for bit as `interpret.floats` computes them, but faster.

    Args:
        program: the program.
        outputs: the outputs wanted, in order.
        store: keeps the generated module; by default it lives as long as the process.

    Attributes:
        inputs: what the outputs depend on, in the order of a point's values.
        outputs: in the order of the results.
        evaluate: the generated function, from a tuple of floats to a tuple of floats.

    Raises:
        KeyError: an output that the program does not have.

    >>> from .program import Program
    >>> half = Program([("input", "x"), ("constant", 2), ("divide", 0, 1)], {"x": 0}, {}, {"half": 2})
    >>> PointKernel(half, ["half"])({"x": 3})
    {'half': 1.5}
    """

    def __init__(self, program: Program, outputs: Sequence[str], *, store: Store | None = None) -> None:
        smaller = prune(program, outputs)
        self.inputs = tuple(smaller.inputs)
        self.outputs = tuple(outputs)
        module = (store or _temporary()).module(point_module(smaller, self.outputs), "point")
        self.evaluate: Callable[[Point], Point] = module.evaluate

    def __call__(self, values: Mapping[str, float]) -> dict[str, float]:
        """The outputs, given a value for each input; other names are left aside.

        Raises:
            KeyError: an input without a value.
            ArithmeticError, ValueError: an operation that has no value at this point.
        """
        return dict(zip(self.outputs, self.evaluate(self.point(values)), strict=True))

    def point(self, values: Mapping[str, float]) -> Point:
        """The values in the order of the inputs, as floats."""
        return tuple([float(values[name]) for name in self.inputs])


class GradientKernel:
    """An output of a program and its derivatives at one point.

    Args:
        program: the program.
        output: the output to differentiate.
        inputs: by which; by default all that it depends on.
        store: keeps the generated module; by default it lives as long as the process.

    Raises:
        KeyError: an output or an input that the program does not have.
    """

    def __init__(
        self, program: Program, output: str, inputs: Sequence[str] | None = None, *, store: Store | None = None
    ) -> None:
        if inputs is None:
            inputs = tuple(prune(program, [output]).inputs)
        self.output = output
        self.wanted = tuple(inputs)
        names = [output, *(PREFIX + name for name in inputs)]
        self._kernel = PointKernel(gradient(program, output, inputs), names, store=store)

    def partials(self, values: Mapping[str, float]) -> tuple[float, dict[str, float]]:
        """The output, and its partial derivative by each input, in units of output per unit of input.

        Raises:
            KeyError: an input without a value.
            ArithmeticError, ValueError: an operation that has no value at this point.
        """
        value, *slopes = self._kernel.evaluate(self._kernel.point(values))
        return value, dict(zip(self.wanted, slopes, strict=True))

    def elasticities(self, values: Mapping[str, float]) -> dict[str, float]:
        """How many percent the output changes for one percent of each input: d ln(output) / d ln(input).

        Raises:
            KeyError: an input without a value.
            ArithmeticError, ValueError: an operation that has no value at this point, or an output that is zero.
        """
        value, slopes = self.partials(values)
        return {name: float(values[name]) * slope / value for name, slope in slopes.items()}


@cache
def _temporary() -> Store:
    folder = Path(tempfile.mkdtemp(prefix="point-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Store(folder)
