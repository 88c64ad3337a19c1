"""The kernels of grids built by GCC in place of LLVM through Numba: what building costs, and what it gives.

python benchmarks/bench_compilers.py [--json FILE] [--repeat 5] [--mix 0,2] [--points 64]
python benchmarks/bench_compilers.py --smoke

The generated module itself is written as C, statement by statement, and runs in place of Numba's machine code, with the
same tables, boxes and threads, so that the two differ by their compiler alone; values have the same bits. Building is
counted in processor seconds of this process and of those that it starts, running in nanoseconds of processor time a
point, in turn, the best of several. `--smoke` compares results on small grids and measures nothing.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_kernels import MIXES, SMOKE, TILED, in_turn, kernel, points, show, step, store, tile, tiled_axes

from symperf.codegen.bytecode import bytecode_machine
from symperf.codegen.kernel import GridKernel
from symperf.codegen.reduce import TopK
from symperf.codegen.store import digest
from symperf.codegen.workers import default_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GCC = ["gcc", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
"""The same bits as LLVM gives: nothing of -ffast-math that changes a value."""
BUILDS = {"c_O3": ["-O3"], "c_O3_512": ["-O3", "-mprefer-vector-width=512"], "c_O2": ["-O2"]}
OPERATIONS = """
#include <math.h>
#define add(a, b) ((a) + (b))
#define subtract(a, b) ((a) - (b))
#define multiply(a, b) ((a) * (b))
#define divide(a, b) ((a) / (b))
#define ceil_div(a, b) ceil((a) / (b))
#define load(array, first, at) (array)[(first) + (at)]
#define store(array, first, at, value) (array)[(first) + (at)] = (value)
static inline double maximum(double a, double b) { return a > b ? a : b; }
static inline double minimum(double a, double b) { return a < b ? a : b; }
static inline double above(double a, double b) { return a > b; }
static inline double at_least(double a, double b) { return a >= b; }
static inline long min(long a, long b) { return a < b ? a : b; }
static inline double divide_by(double a, double b, double inverse) {
    double first = a * inverse, second = fma(fma(-first, b, a), inverse, first);
    return second == second ? second : first;
}
#define ceil_div_by(a, b, inverse) ceil(divide_by(a, b, inverse))
#define root(a) sqrt(a)
"""
DOUBLES = re.compile(r"(b|s|c|heap|t\d+|filled)$")
WHOLES = {"lo", "hi", "voff", "strides", "places", "count", "counts"}
REAL = re.compile(r"(v\d+|y\d+|r\d+_\d+|value|worst)$")
"""Names of arrays of floats, of arrays of whole numbers, and of floats, in generated modules."""
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.BitAnd: "&",
    ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.And: "&&", ast.Or: "||",
}  # fmt: skip


def _is_array(name: str) -> bool:
    return bool(DOUBLES.match(name)) or name in WHOLES


def _value(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.Name):
        return f"{node.id}, {node.id}_size" if _is_array(node.id) else node.id
    if isinstance(node, ast.Attribute):
        return "INFINITY" if node.attr == "inf" else f"{ast.unparse(node.value)}_size"
    if isinstance(node, ast.Subscript):
        return f"{ast.unparse(node.value)}[{_value(node.slice)}]"
    if isinstance(node, ast.BinOp):
        return f"({_value(node.left)} {SIGNS[type(node.op)]} {_value(node.right)})"
    if isinstance(node, ast.Compare):
        return f"({_value(node.left)} {SIGNS[type(node.ops[0])]} {_value(node.comparators[0])})"
    if isinstance(node, ast.BoolOp):
        return "(" + f" {SIGNS[type(node.op)]} ".join(map(_value, node.values)) + ")"
    if isinstance(node, ast.IfExp):
        return f"({_value(node.test)} ? {_value(node.body)} : {_value(node.orelse)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"(-{_value(node.operand)})"
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in ("load", "store"):
            array, *rest = node.args
            return f"{name}({ast.unparse(array)}, {', '.join(map(_value, rest))})"
        given = ", ".join(map(_value, node.args))
        return f"(long)({given})" if name == "np.int64" else f"{name}({given})"
    raise ValueError(f"no C for {ast.unparse(node)}")


def _statements(body: Sequence[ast.stmt]) -> list[str]:
    lines: list[str] = []
    for node in body:
        if isinstance(node, ast.Assign) and not ast.unparse(node.value).startswith("intrinsics."):
            lines.append(f"{_value(node.targets[0])} = {_value(node.value)};")
        elif isinstance(node, ast.AugAssign):
            lines.append(f"{_value(node.target)} {SIGNS[type(node.op)]}= {_value(node.value)};")
        elif isinstance(node, ast.For):
            assert isinstance(node.iter, ast.Call)
            name, given = ast.unparse(node.target), [_value(each) for each in node.iter.args]
            first, last, by = [*(["0", *given] if len(given) == 1 else given), "1"][:3]
            if not any(isinstance(each, ast.For | ast.If) for each in node.body):
                lines.append("#pragma GCC ivdep")
            lines += [f"for (long {name} = {first}; {name} < {last}; {name} += {by}) {{", *_statements(node.body), "}"]
        elif isinstance(node, ast.While | ast.If):
            word = "while" if isinstance(node, ast.While) else "if"
            test = "1" if ast.unparse(node.test) == "True" else _value(node.test)
            lines += [f"{word} ({test}) {{", *_statements(node.body), "}"]
        elif isinstance(node, ast.Return | ast.Break):
            lines.append(ast.unparse(node) + ";")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:  # no hint to LLVM
            lines.append(_value(node.value) + ";")
    return lines


def _function(node: ast.FunctionDef) -> str:
    given = [argument.arg for argument in node.args.args]
    shown = []
    for name in given:
        kind = "double" if DOUBLES.match(name) or REAL.match(name) else "long"
        shown.append(f"{kind} *restrict {name}, long {name}_size" if _is_array(name) else f"{kind} {name}")
    stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    named = stored - set(given) - set(re.findall(r"(\w+) = intrinsics", ast.unparse(node)))
    locals_ = [f"{'double' if REAL.match(name) else 'long'} {name};" for name in sorted(named)]
    static = "" if node.name == "kernel" else "static "
    lines = [f"{static}void {node.name}({', '.join(shown)}) {{", *locals_, *_statements(node.body), "}"]
    return "\n".join(lines)


def to_c(text: str) -> str:
    """A generated Numba module as C: the same statements in the same order.

    Raises:
        ValueError: something in it has no C here.
    """
    functions = [_function(node) for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return "\n\n".join([OPERATIONS, *functions]) + "\n"


def build_in_c(text: str, folder: Path, flags: Sequence[str]) -> Callable[..., None]:
    """The function `kernel` of a generated module, built by GCC: called with arrays as Numba's is."""
    source = to_c(text)
    stem = folder / digest(source, *flags)  # a library of the same path would not be loaded again
    stem.with_suffix(".c").write_text(source, encoding="utf-8")
    library = stem.with_suffix(".so")
    subprocess.run([*GCC, *flags, str(stem.with_suffix(".c")), "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).kernel
    function.restype = None

    def call(*arrays: Any) -> None:
        given: list[Any] = []
        for array in arrays:
            given += [ctypes.c_void_p(array.ctypes.data), ctypes.c_long(array.size)]
        function(*given)

    return call


class Grid:
    """A kernel over a grid whose machine code can be exchanged."""

    def __init__(self, best: GridKernel, axes: dict[str, Any], values: dict[str, float]) -> None:
        self.best = best
        self.columns, self.values = best._read_inputs(axes, values)
        sizes = {name: len(column) for name, column in self.columns.items()}
        self.count = prod(sizes.values())
        program = best._choose_program(self.columns, self.values)
        self.generated = best._generate(program, best.choose_nest(sizes), sizes, None)

    def run(self, function: Any) -> Any:
        """The best point by this machine code; None: by Numba's."""
        self.generated._function = function
        return self.best._run_on_numba(self.generated, self.columns, self.values, default_threads(self.count))


def _processor_seconds() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def same_bits(what: str, found: Any, expected: Any) -> None:
    """Compare what two compilers found.

    Raises:
        AssertionError: they differ.
    """
    if not len(expected):
        raise AssertionError(f"{what}: no point fits")
    for name, column in expected.values.items():
        if not np.array_equal(found.values[name], column) or found.feasible != expected.feasible:
            raise AssertionError(f"{what}: found {found.values[name]}, expected {column}")


def bench_mix(mix: Sequence[str], repeat: int, folder: Path, count: int) -> dict[str, Any]:
    """One mix by each compiler."""
    values = step()[1]
    grid = Grid(kernel(mix, TopK("time", 1)), {name: points(name, count, values) for name in mix}, values)
    bytecode_machine(store())(
        np.empty(0, np.int64), np.empty(0), 0
    )  # what runs before the loops, and Numba itself, are loaded in both cases
    row: dict[str, Any] = {"loops": list(mix)}
    begin = _processor_seconds()
    expected = grid.run(None)
    functions: dict[str, Any] = {"numba": grid.generated._function}
    row["numba_build_s"] = _processor_seconds() - begin
    for name, flags in BUILDS.items():
        begin = _processor_seconds()
        functions[name] = build_in_c(grid.generated.text, folder, flags)
        row[f"{name}_build_s"] = _processor_seconds() - begin
        same_bits(name, grid.run(functions[name]), expected)
    begin = _processor_seconds()
    grid.run(functions["numba"])
    row["numba_build_s"] -= _processor_seconds() - begin  # building alone
    times = in_turn(repeat, {name: partial(grid.run, made) for name, made in functions.items()})
    return row | {f"{name}_ns": cpu / grid.count * 1e9 for name, (_, cpu) in times.items()}


def smoke(folder: Path) -> None:
    """C and NumPy find the same points, to the bit, in small grids."""
    values = step()[1]
    cases = [(kernel(mix, TopK("time", 3)), mix) for mix in (MIXES[0], MIXES[2])]
    grids = [
        Grid(best, {n: points(n, size, values) for n, size in zip(mix, SMOKE, strict=True)}, values)
        for best, mix in cases
    ]
    program, known = tile()
    best = GridKernel(program, TILED, ["time"], constraints=["slack"], reduce=TopK("time", 3), store=store())
    for grid in (*grids, Grid(best, tiled_axes(SMOKE[::-1]), known)):
        found = grid.run(build_in_c(grid.generated.text, folder, ["-O0"]))
        same_bits("C beside NumPy", found, grid.best.run(grid.columns, grid.values, tier="numpy"))
        print(f"{', '.join(grid.columns)}: the same in C and NumPy", flush=True)


def main() -> None:
    """Measure, or compare results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--mix", default="0,2")
    parser.add_argument("--points", type=int, default=64, help="of an axis")
    parser.add_argument("--smoke", action="store_true", help="small grids; compare results alone")
    args = parser.parse_args()
    if not shutil.which("gcc"):
        print("no gcc here: nothing to compare")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SYMPERF_CACHE"] = folder
        if args.smoke:
            smoke(Path(folder))
            return
        rows = []
        for k in map(int, args.mix.split(",")):
            rows.append(bench_mix(MIXES[k], args.repeat, Path(folder), args.points))
            show("CPU s to build, CPU ns a point", rows[-1:])
    if args.json:
        args.json.write_text(json.dumps({"load": os.getloadavg()[0], "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
