"""`docs/performance.md`, of what `benchmarks/performance.py` measured: tables, and sentences true of any numbers."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

WRITTEN = "Written by `python benchmarks/performance.py --write`; not by hand."
HEAD = """
How fast symperf is, and how much memory it takes: grids, searches, single predictions and whole commands, beside C,
NumPy and other tools where they could be installed. **Absolute numbers are of one machine; ratios are of one run**, in
which what is compared ran by turns. CPU seconds are of all processes and threads of a command together, the least of
several runs, since other work only adds; rates are the best of several.
"""
MADE = """
Made by `python benchmarks/performance.py --write` (`--opponents PYTHON`: an interpreter that has the other tools). What
was measured is kept in `docs/performance/results.json`; `--only NAME` measures one part of it anew. `make smoke` runs
each part small, and compares results.
"""
SAID = {
    "commands": """
        From the shell's call to the last line, start of the interpreter included. First: with an empty cache,
        so that formulas are put together, lowered and, in a search, compiled. Again: with what the first kept;
        both print the same. `python -c "import sympy"` alone takes {base} CPU s. MB are those of the largest
        process.
    """,
    "grids": """
        Time and memory of a training step of GPT-3 175B over a grid of 100 values of each of four axes, 10^8
        points: the fastest that fits, on all processors. C is written from the same formulas by a second route
        (`benchmarks/loops_in_c.py`), the better of two orders of loops; that of the last line by hand
        (`benchmarks/tile_by_hand.c`); both by GCC with `-O3 -march=native` and OpenMP. NumPy computes a part of
        the grid. C finds the same point. The kernel counts which points fit, and rules out by a bound blocks of
        which none can be among the best; "each" computes the time of every point, as C and NumPy do. C to each is of
        CPU time: above 1 the kernel is faster. The first mix is the worst of those tried; two axes of the third are
        cheap.
    """,
    "points": """
        The hundred best of grids of tp, micro_batch, hidden_size and memory_bandwidth, by time within memory.
        The grid is never stored; MB are the most that the process ever held, Python and its libraries included.
    """,
    "processors": "A grid of the same axes and {points} points, of which the best is kept.",
    "scattered": """
        {points} points that share no axis, on one core: the time of the same step at each. To a kernel they are
        one axis along which several inputs vary. The compiled interpreter is machine code that serves every
        program, so that nothing is compiled for one. All find the same.
    """,
    "spaces": """
        Every plan of the space, the best of them and why others do not run; in a process that searched the same
        before.
    """,
    "predictions": """
        One prediction of a training step of a GPT as wide as GPT-3 175B, in a process that made one before,
        each of another sequence length. The formulas are closed: layers and devices are numbers in them.
    """,
    "opponents": """
        Other tools from the package index, in an interpreter of their own, and symperf for the same question.
        What they predict, how right it is ([accuracy](accuracy.md)) and which plans a search tries are not the
        same. {versions} Calculon (SC'23) is on no package index (the package of that name is another program):
        nothing is quoted of it.
    """,
}
"""What is said before each table."""
TOLD = {
    "commands": "Whole commands",
    "grids": "Grids",
    "points": "More points",
    "processors": "More processors",
    "scattered": "Scattered points",
    "spaces": "Larger searches",
    "predictions": "More layers and devices",
    "opponents": "Other tools",
}
"""The parts in the order of the page, with their headings."""


def page(results: Mapping[str, Any]) -> str:
    """The page of the parts that were measured."""
    parts = results["parts"]
    text = ["# Performance\n", f"<!-- {WRITTEN} -->\n", prose(HEAD), prose(_machine(results["machine"])), prose(MADE)]
    for name, title in TOLD.items():
        if name in parts:
            said, tables = TABLES[name](parts[name]["figures"])
            text += [f"## {title}\n", prose(SAID[name].format(**said)), *tables, prose(_when(parts[name]))]
    return "\n".join(text)


def prose(text: str) -> str:
    """A paragraph in lines of 120 characters."""
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False) + "\n"


def missing(results: Mapping[str, Any]) -> list[str]:
    """The parts that were not measured yet."""
    return [name for name in TOLD if name not in results["parts"]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text, and whose others are numbers.

    >>> print(table(("a", "b"), [("x", "1")]))
    | a | b |
    |---|---:|
    | x | 1 |
    <BLANKLINE>
    """
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    cells = [f"| {' | '.join(line)} |" for line in (lines[0], *lines[2:])]
    return "\n".join([cells[0], f"|{'|'.join(lines[1])}|", *cells[1:], ""])


def number(value: float | None) -> str:
    """Three digits, and commas of thousands; a dash for none.

    >>> number(1234567.0), number(12.345), number(0.00123), number(0.0), number(999.6), number(None)
    ('1,234,567', '12.3', '0.00123', '0', '1,000', '–')
    """
    if value is None:
        return "–"
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(float(f"{value:.3g}")) >= 100 else f"{value:#.3g}"


def _machine(known: Mapping[str, Any]) -> str:
    cores = "1 core" if known["processors"] == 1 else f"{known['processors']} cores"
    versions = f"Python {known['python']}, SymPy {known['sympy']}, NumPy {known['numpy']}, Numba {known['numba']}"
    return (
        f"Measured on {cores} of what the system calls {known['processor']} ({known['vectors']}), "
        f"{known['memory_bytes'] / 2**30:.0f} GiB; {versions}, {known['compiler']}."
    )


def _when(part: Mapping[str, Any]) -> str:
    return (
        f"symperf {part['version']}, {part['date']}, {part['took_s']:.0f} s in all; the load of the machine was "
        f"{part['load']:.1f} as it began."
    )


def _mb(value: float) -> str:
    return f"{value / 1e6:,.0f}"


Part = tuple[dict[str, str], list[str]]
"""What goes into the sentences, and what follows them."""


def _commands(figures: Mapping[str, Any]) -> Part:
    head = (
        "command",
        "CPU s, again",
        "of `import sympy`",
        "wall s, again",
        "CPU s, first",
        "wall s, first",
        "MB, first",
    )
    keys = ("warm_cpu_s", "to_sympy", "warm_wall_s", "cold_cpu_s", "cold_wall_s")
    rows = [(r["what"], *(number(r[key]) for key in keys), _mb(r["cold_peak_bytes"])) for r in figures["rows"]]
    lines = "".join(f"{row['command']}\n" for row in figures["rows"])
    return {"base": number(figures["import_sympy_cpu_s"])}, [table(head, rows), f"```text\n{lines}```\n"]


def _grids(figures: Mapping[str, Any]) -> Part:
    others = ("each", "C", "NumPy, open axes")
    head = ("axes", "M points/s", *others, "CPU ns a point", *others, "C to each")
    names = ("grid", "every", "c", "numpy_open")
    keys = (*names, *(f"{name}_cpu_ns" for name in names), "to_c")
    named = [(", ".join(row["axes"]), row) for row in figures.get("grid", [])]
    named.append(("a tile of a product: groups, rows, inner, columns", figures["hand"]))
    return {}, [table(head, [(name, *(number(row.get(key)) for key in keys)) for name, row in named])]


def _points(figures: Mapping[str, Any]) -> Part:
    rows = []
    for row in figures["top"]:
        count, seconds = row["points"], row["seconds"]
        each = (seconds, count / seconds / 1e6, seconds / count * 1e9)
        rows.append((f"{count:,}", *map(number, each), _mb(row["peak_bytes"])))
    return {}, [table(("points", "wall s", "M points/s", "ns a point", "MB"), rows)]


def _processors(figures: Sequence[Mapping[str, Any]]) -> Part:
    rows = []
    for row in figures:
        wall = row["wall_s"]
        each = (wall, figures[0]["wall_s"] / wall, row["cpu_s"], row["points"] / wall / 1e6)
        rows.append((str(row["threads"]), *map(number, each)))
    head = ("threads", "wall s", "speed, of one thread's", "CPU s", "M points/s")
    return {"points": f"{figures[0]['points']:,}"}, [table(head, rows)]


def _scattered(figures: Sequence[Mapping[str, Any]]) -> Part:
    rows = [(r["route"], number(r["cpu_ns_per_point"]), number(1e3 / r["cpu_ns_per_point"])) for r in figures]
    return {"points": f"{figures[0]['points']:,}"}, [table(("route", "CPU ns a point", "M points a CPU s"), rows)]


def _spaces(figures: Sequence[Mapping[str, Any]]) -> Part:
    rows = []
    for row in figures:
        counts = (f"{row[key]:,}" for key in ("considered", "legal", "feasible"))
        rates = (row[key] / row["cpu_s"] / 1e6 for key in ("considered", "legal"))
        rows.append((row["what"], *counts, *map(number, (row["cpu_s"], row["wall_s"], *rates))))
    head = ("GPT-3 175B on H100", "plans considered", "that can run", "that fit")
    return {}, [table((*head, "CPU s", "wall s", "M considered a CPU s", "M that can run a CPU s"), rows)]


def _predictions(figures: Sequence[Mapping[str, Any]]) -> Part:
    rows = [(f"{r['layers']:,}", f"{r['devices']:,}", number(r["cpu_s"] * 1e3), number(r["step_s"])) for r in figures]
    return {}, [table(("layers", "devices", "CPU ms", "predicted step, s"), rows)]


def _opponents(figures: Mapping[str, Any]) -> Part:
    there = [f"{name} {version}" for name, version in figures["versions"].items() if version]
    absent = [name for name, version in figures["versions"].items() if not version]
    said = f"Versions: {', '.join(there)}. " if there else ""
    said += f"Not installed in this run, so not measured: {', '.join(absent)}." if absent else ""
    ours = {row["question"]: row["cpu_s"] for row in figures["rows"] if row["tool"] == "symperf"}
    rows = []
    for row in figures["rows"]:
        wall, peak = row.get("wall_s"), row.get("peak_bytes")
        measured = (number(row["cpu_s"] * 1e3), number(wall and wall * 1e3), _mb(peak) if peak else number(None))
        rows.append((row["question"], row["tool"], *measured, number(row["cpu_s"] / ours[row["question"]])))
    head = ("question", "tool", "CPU ms", "wall ms", "MB", "CPU, of symperf's")
    return {"versions": said}, [table(head, rows)] if rows else []


TABLES: dict[str, Callable[[Any], Part]] = {
    "commands": _commands,
    "grids": _grids,
    "points": _points,
    "processors": _processors,
    "scattered": _scattered,
    "spaces": _spaces,
    "predictions": _predictions,
    "opponents": _opponents,
}
