"""The loops of a kernel: which axes are loops around, which are run over as vectors, and in what order.

A nest has outer loops and, innermost, a vector: the points of one axis, or of a few short axes together, in blocks.
An instruction is computed inside the outermost loop that decides its operands, once if it depends on no vector axis
and for a block of points if it does, so that only what depends on every loop is left innermost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

from .passes import MAX_AXES, masks
from .program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .passes import Axis

LANES = 8
"""Points that a machine instruction works on at most; vectors are padded to a multiple."""
LOOP = 24.0
"""Cost of starting a vector loop and of looking at its results, in operations."""
LONGEST = 16_384
"""Points of several axes that are worth being made one vector."""
WEIGHTS = {"input": 0.0, "constant": 0.0, "let": 0.0, "divide": 5.0, "ceil_div": 6.0, "sqrt": 6.0}
SCALAR_CALLS = {"log2": 20.0, "power": 40.0}
"""Cost of the operations that are computed one point at a time, also in a vector."""
BLOCKS = (1024, 512, 256, 128)
CACHE_BYTES = 192 * 1024
"""What the rows of one block may take: a part of the cache nearest to a core but one."""


@dataclass(frozen=True)
class LoopNest:
    """The loops of a kernel.

    Attributes:
        outer: axes with a loop each, outermost first.
        vector: axes whose points together are the vector, the last one fastest.
    """

    outer: tuple[Axis, ...]
    vector: tuple[Axis, ...]


@dataclass(frozen=True)
class Placement:
    """Where an instruction is computed.

    Attributes:
        level: outer loops around it.
        vector: whether for every point of the block, or once.
    """

    level: int
    vector: bool


def placements(program: Program, nest: LoopNest) -> list[Placement]:
    """Where each instruction is computed."""
    order = (*nest.outer, *nest.vector)
    inside = (1 << len(nest.outer)) - 1
    return [Placement((m & inside).bit_length(), bool(m & ~inside)) for m in masks(program, order)]


def choose_loop_nest(program: Program, sizes: Mapping[Axis, int], block: int = 512) -> LoopNest:
    """The loops of least estimated cost.

    Args:
        program: the program, reassociated and pruned.
        sizes: points by axis.
        block: points of the vector that are computed together.

    Raises:
        ValueError: no axis, or more than `passes.MAX_AXES`.
    """
    if not 1 <= len(sizes) <= MAX_AXES:
        raise ValueError(f"a grid has 1 to {MAX_AXES} axes, not {len(sizes)}")
    # 1. What the instructions that depend on each set of axes cost together, at one point and at a line of lanes. A
    #    function of the library is called once for each lane.
    axes = tuple(sizes)
    costs: dict[int, tuple[float, float]] = {}
    for (operation, *_), mask in zip(program.instructions, masks(program, axes), strict=True):
        calls = SCALAR_CALLS.get(operation)
        scalar = WEIGHTS.get(operation, 1.0) if calls is None else calls
        one, many = costs.get(mask, (0.0, 0.0))
        costs[mask] = (one + scalar, many + (scalar if calls is None else calls * LANES))
    # 2. Every set of axes that might be the vector, with the best order of the others; of equals the first.
    found = [
        (*_best_order(costs, axes, sizes, vector, block), -k, vector) for k, vector in enumerate(_vectors(axes, sizes))
    ]
    _, outer, _, vector = min(found, key=lambda entry: (entry[0], -entry[2]))
    return LoopNest(outer, vector)


def _vectors(axes: Sequence[Axis], sizes: Mapping[Axis, int]) -> Iterator[tuple[Axis, ...]]:
    """The sets of axes that might be the vector."""
    for axis in axes:
        yield (axis,)
    most = 3 if len(axes) <= 6 else 2
    for count in range(2, most + 1):
        for several in combinations(axes, count):
            if prod(sizes[axis] for axis in several) <= LONGEST:
                yield several
    if len(axes) > most and prod(sizes.values()) <= LONGEST:
        yield tuple(axes)


def _best_order(
    costs: Mapping[int, tuple[float, float]],
    axes: Sequence[Axis],
    sizes: Mapping[Axis, int],
    vector: Sequence[Axis],
    block: int,
) -> tuple[float, tuple[Axis, ...]]:
    """The least cost of the loop nests with this vector, and the order of its loops.

    A loop runs as often as those around it, whatever their order: the cost of what is decided in the innermost loop of
    a set depends on the set alone. So the best order of a set of axes is the best order of all but one of them with
    that one inside, and sets are solved from the small to the large (as Held and Karp do for tours).
    """
    points = prod(sizes[axis] for axis in vector)
    blocks = -(-points // block)
    chunks = -(-points // LANES)
    outer = sorted((axis for axis in axes if axis not in vector), key=lambda axis: -sizes[axis])
    bit = {axis: 1 << k for k, axis in enumerate(outer)}
    # 1. What one pass costs of instructions that depend on just these outer axes; below, on these or fewer.
    held = [0.0] * (1 << len(outer))
    for mask, (one, many) in costs.items():
        inside = 0
        is_vector = False
        for k, axis in enumerate(axes):
            if mask >> k & 1:
                inside |= bit.get(axis, 0)
                is_vector |= axis in vector
        held[inside] += many * chunks if is_vector else one * blocks
    # 2. Sums over subsets, axis by axis, and how often the innermost of the loops over each set runs.
    volume = [1.0] * len(held)
    for k, axis in enumerate(outer):
        for chosen in range(len(held)):
            if chosen >> k & 1:
                held[chosen] += held[chosen ^ 1 << k]
                volume[chosen] *= sizes[axis]
    # 3. The best order of each set: of all choices of its innermost axis, what that one newly decides, as often as the
    #    whole set runs, besides the best order of the rest.
    best, last = [held[0]] + [0.0] * (len(held) - 1), [0] * len(held)
    for chosen in range(1, len(held)):
        options = []
        for k in range(len(outer)):
            if chosen >> k & 1:
                rest = chosen ^ 1 << k
                options.append((best[rest] + volume[chosen] * (held[chosen] - held[rest] + LOOP * blocks), k))
        best[chosen], last[chosen] = min(options)
    # 4. Back from the set of all axes, the innermost first.
    order: list[Axis] = []
    chosen = len(held) - 1
    while chosen:
        order.append(outer[last[chosen]])
        chosen ^= 1 << last[chosen]
    return best[-1], tuple(reversed(order))


def choose_block(rows: int) -> int:
    """Points to compute together, so that the rows of intermediate values stay in a near cache."""
    for block in BLOCKS:
        if rows * block * 8 <= CACHE_BYTES:
            return block
    return BLOCKS[-1]


def schedule(program: Program) -> Program:
    """The same program with each operand computed as late as can be, so that few values wait at any time.

    Operands that need more values at once are computed first, as in Sethi and Ullman's numbering.
    """
    # 1. The values that wait at once while an instruction is computed: with the operand of greatest need first, the
    #    k-th operand is computed while k results wait.
    need = [0] * len(program)
    for position, (operation, *operands) in enumerate(program.instructions):
        if operation in ("input", "constant"):
            continue
        inner = sorted((need[o] for o in dict.fromkeys(operands)), reverse=True)
        need[position] = max([1, *(n + k for k, n in enumerate(inner))])
    # 2. A walk from the outputs to the inputs, depth first; the stack pops the operand of greatest need first.
    order: list[int] = []
    done = [False] * len(program)
    for root in sorted(program.outputs.values(), key=lambda p: -need[p]):
        stack = [(root, False)]
        while stack:
            position, ready = stack.pop()
            if done[position]:
                continue
            if ready:
                done[position] = True
                order.append(position)
                continue
            operation, *operands = program.instructions[position]
            stack.append((position, True))
            if operation not in ("input", "constant"):
                stack += [(o, False) for o in sorted(operands, key=lambda o: need[o])]
    # 3. The instructions in that order, their operands renumbered.
    at = {position: k for k, position in enumerate(order)}
    instructions = []
    for position in order:
        operation, *operands = program.instructions[position]
        moved = operands if operation in ("input", "constant") else [at[o] for o in operands]
        instructions.append((operation, *moved))
    names = (program.inputs, program.lets, program.outputs)
    return Program(instructions, *({n: at[p] for n, p in named.items() if p in at} for named in names))
