"""Programs as machine code by the system's C compiler, where there is one, loaded into this process.

The shared library is kept in a `Store` beside its source, under the hash of the source, and is specific to the
processor and the compiler. It is compiled without -ffast-math: quotients that are rounded up stay true divisions, and
results are those of the interpreter, bit for bit but for logarithms and general powers. (A grid may multiply by
reciprocals instead of dividing, see `passes.strengthen`.)
"""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .export import c_source
from .modules import seal, source
from .passes import prune
from .store import digest, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .program import Program
    from .store import Store

FLAGS = ("-std=c99", "-O3", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
"""None of them changes a result: the two `-fno` only give up errno and floating-point traps."""
EXTRAS = (("-march=native", "-fopenmp"), ("-march=native",), ("-fopenmp",), ())
"""What is tried in turn, as not every compiler knows each."""
_NAME = "kernel_of_program"
_NOWHERE = ctypes.c_size_t(-1).value


class CompilerError(RuntimeError):
    """There is no C compiler, or it failed."""


def compiler() -> tuple[str, ...] | None:
    """The command of the C compiler: that of the variable CC, or cc, gcc or clang; None where there is none."""
    asked = shlex.split(os.environ.get("CC", ""))
    for command in ([asked] if asked else []) + [["cc"], ["gcc"], ["clang"]]:
        found = shutil.which(command[0])
        if found:
            return (found, *command[1:])
    return None


class Native:
    """A program's outputs as compiled C: single points, many points, grids, and the best point of a grid.

    Args:
        program: what to compute.
        outputs: of the program.
        store: where source and library are kept.
        columns: inputs that vary in `points`; by default all.
        axes: inputs that `grid` and `argmin` run over, in the order of their results; may be none.
        sizes: points by axis that the order of the loops is chosen for; any number works.
        minimise: the output that `argmin` minimises; by default the first.
        constraints: outputs of the program that have to be at least 0 where the minimum is.

    Raises:
        CompilerError: no compiler, or it failed.
        KeyError: an output or an input that the program does not have.
        ValueError: no outputs, or a name twice.
    """

    def __init__(
        self,
        program: Program,
        outputs: Sequence[str],
        store: Store,
        *,
        columns: Sequence[str] | None = None,
        axes: Sequence[str] = (),
        sizes: Mapping[str, int] | None = None,
        minimise: str | None = None,
        constraints: Sequence[str] = (),
    ) -> None:
        everything = list(dict.fromkeys([*outputs, *([] if minimise is None else [minimise]), *constraints]))
        header, text = c_source(
            program, outputs, _NAME, columns=columns, axes=axes, sizes=sizes, minimise=minimise, constraints=constraints
        )
        self.inputs = tuple(prune(program, everything).inputs)
        self.outputs = tuple(outputs)
        self.columns = self.inputs if columns is None else tuple(columns)
        self.axes = tuple(axes)
        self.path = library(header, text, _NAME, store)
        loaded = ctypes.CDLL(str(self.path))
        self._call: dict[str, Any] = {"": loaded[_NAME]}
        kinds = [part for part, there in (("points", self.columns), ("grid", axes), ("argmin", axes)) if there]
        self._call |= {kind: loaded[f"{_NAME}_{kind}"] for kind in kinds}
        for function in self._call.values():
            function.restype = None
        if axes:
            self._call["argmin"].restype = ctypes.c_size_t

    def point(self, inputs: Mapping[str, float]) -> dict[str, float]:
        """The outputs at one point.

        Raises:
            KeyError: an input without a value.
        """
        results = np.empty(len(self.outputs))
        self._call[""](_pointer(self._scalars(inputs, ())), _pointer(results))
        return dict(zip(self.outputs, results.tolist(), strict=True))

    def points(
        self, inputs: Mapping[str, float], columns: Mapping[str, NDArray[np.float64]]
    ) -> dict[str, NDArray[np.float64]]:
        """The outputs at many points, each of shape (points,).

        Args:
            inputs: numbers of the inputs that do not vary.
            columns: for each of `self.columns` an array of shape (points,).

        Raises:
            KeyError: an input without a value.
            ValueError: columns of different lengths, or not of one dimension.
        """
        given = [_row(name, columns[name]) for name in self.columns]
        counts = {len(column) for column in given}
        if len(counts) != 1:
            raise ValueError(f"columns of different lengths: {sorted(counts)}")
        (count,) = counts
        results = np.empty((len(self.outputs), count))
        self._call["points"](
            _pointer(self._scalars(inputs, self.columns)), ctypes.c_size_t(count), _pointers(given), _pointers(results)
        )
        return dict(zip(self.outputs, results, strict=True))

    def grid(
        self, inputs: Mapping[str, float], axes: Mapping[str, NDArray[np.float64]]
    ) -> dict[str, NDArray[np.float64]]:
        """The outputs at every point of the product of axes, each of the shape of `self.axes`.

        Args:
            inputs: numbers of the inputs that are not axes.
            axes: for each of `self.axes` an array of one dimension.

        Raises:
            KeyError: an input or an axis without a value.
            ValueError: an axis that is not of one dimension.
        """
        given = [_row(name, axes[name]) for name in self.axes]
        shape = tuple(len(axis) for axis in given)
        results = np.empty((len(self.outputs), prod(shape)))
        scalars = self._scalars(inputs, self.axes)
        self._call["grid"](_pointer(scalars), _pointers(given), _sizes(shape), _pointers(results))
        return {name: row.reshape(shape) for name, row in zip(self.outputs, results, strict=True)}

    def argmin(
        self, inputs: Mapping[str, float], axes: Mapping[str, NDArray[np.float64]]
    ) -> tuple[int, dict[str, float]] | None:
        """The best point of the product of axes: its index in the order of `self.axes`, the smallest of equals, and
        the outputs there; None where no point meets the constraints with a finite value.

        Raises:
            KeyError: an input or an axis without a value.
            ValueError: an axis that is not of one dimension.
        """  # noqa: D205
        given = [_row(name, axes[name]) for name in self.axes]
        results = np.empty(len(self.outputs))
        at = self._call["argmin"](
            _pointer(self._scalars(inputs, self.axes)),
            _pointers(given),
            _sizes([len(axis) for axis in given]),
            _pointer(results),
        )
        return None if at == _NOWHERE else (int(at), dict(zip(self.outputs, results.tolist(), strict=True)))

    def _scalars(self, inputs: Mapping[str, float], varying: Sequence[str]) -> NDArray[np.float64]:
        return np.array([0.0 if name in varying else inputs[name] for name in self.inputs], dtype=np.float64)


def library(header: str, text: str, name: str, store: Store) -> Path:
    """The shared library of a C source, compiled now unless the store has it.

    Args:
        header: the text of `name.h`.
        text: the text of `name.c`.
        name: of the files.
        store: where they are kept.

    Raises:
        CompilerError: no compiler, or it failed.
        OSError: no folder can be written to.
    """
    command = compiler()
    if command is None:
        raise CompilerError("no C compiler: neither CC nor cc, gcc or clang can be run")
    path = source(store, text, f"{name}.c", digest("c", header, text))
    found = path.with_name(f"{name}-{_machine(command)[:12]}.so")
    if not found.exists():
        write_whole(path.with_suffix(".h"), header.encode())
        _compile(command, path, found)
        seal(path.parent, path.name, check=False)
    return found


def _compile(command: Sequence[str], path: Path, found: Path) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    os.close(handle)
    try:
        for extra in EXTRAS:
            arguments = [*command, *FLAGS, *extra, "-o", temporary, path.name, "-lm"]
            done = subprocess.run(arguments, cwd=path.parent, capture_output=True, text=True, errors="replace")
            if done.returncode == 0:
                Path(temporary).replace(found)
                return
        raise CompilerError(f"{command[0]} failed on generated C: {done.stderr.strip()[:500]}")
    except OSError as error:
        raise CompilerError(f"{command[0]} cannot be run: {error}") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


@cache
def _machine(command: tuple[str, ...]) -> str:
    """A text that changes with the compiler, its flags and the processor that code is compiled for."""
    status = Path(command[0]).stat()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        processor = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        processor = platform.processor()
    mark = f"{Path(command[0]).resolve()}:{status.st_size}:{status.st_mtime_ns}"
    return digest(mark, platform.platform(), processor, *command, *FLAGS)


def _row(name: str, values: Any) -> NDArray[np.float64]:
    row = np.ascontiguousarray(values, dtype=np.float64)
    if np.ndim(values) != 1:
        raise ValueError(f"{name}: expected one dimension, found {np.ndim(values)}")
    return row


def _pointer(values: NDArray[np.float64]) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.ctypes.data)


def _pointers(rows: Any) -> Any:
    return (ctypes.c_void_p * len(rows))(*[row.ctypes.data for row in rows])


def _sizes(shape: Sequence[int]) -> Any:
    return (ctypes.c_size_t * len(shape))(*shape)
