"""The schedule algebra: a step is a tree of operations in sequence, side by side, repeated and idle.

Folding the tree gives time (maxima of sums), executions, work and names. Every operation has a path, which is its row
in a table, its term in LaTeX and its column in a file. One operation may stand at several places of the tree (the
first, the later and the last micro-batch run the same layers); it is one term, found by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy

from ..common.symbolic import replace_symbols
from ..formulas.kernels.roofline import overlapped_time
from ..formulas.parallel.pipeline import end_stages_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ZERO = sympy.S.Zero


@dataclass(frozen=True)
class Demand:
    """What one execution of an operation needs, whatever it runs on.

    Attributes:
        flops: FLOPs on the matrix units (or, for element-wise kernels, on the vector units).
        memory_bytes: compulsory bytes to and from device memory.
        message_bytes: bytes of a collective's or transfer's message.
    """

    flops: Any = ZERO
    memory_bytes: Any = ZERO
    message_bytes: Any = ZERO


@dataclass(frozen=True, eq=False)
class Op:
    """One kernel, collective or transfer; `time` is its closed form on the device.

    Attributes:
        path: its name.
        time: of one execution; of a `summed` operation, of one execution in each step of the `StepSeries` around it.
        demand: of one execution, the mean over the steps for a summed one.
        shape: rows, columns, inner length and groups of a matrix product.
        summed: its time differs from step to step, and `time` is the sum.
        ranks: that a collective or transfer joins; a group of one makes no call.
        launches: operations of the host that it takes.
    """

    path: str
    time: Any
    demand: Demand = field(default_factory=Demand)
    shape: tuple[Any, Any, Any, Any] | None = None
    summed: bool = False
    ranks: Any = sympy.S.One
    launches: Any = sympy.S.One


@dataclass(frozen=True, eq=False)
class Sequence:
    """Its children one after another."""

    children: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    """Its child, `count` times."""

    child: Node
    count: Any


@dataclass(frozen=True, eq=False)
class StepSeries:
    """Its child, once in each of `count` steps; operations that are `summed` tell their sum over the steps."""

    child: Node
    count: Any


@dataclass(frozen=True, eq=False)
class Overlap:
    """Work, with a transfer of which the part `fraction` may run beside it."""

    work: Node
    transfer: Node
    fraction: Any


@dataclass(frozen=True, eq=False)
class Ends:
    """The extra work of a pipeline's first and last stage, for `micro_batches` through `stages`."""

    first: Node
    last: Node
    micro_batches: Any
    stages: Any


@dataclass(frozen=True, eq=False)
class Idle:
    """Waiting for as long as `count` executions of its child take: no work is done. It is a term of its own."""

    path: str
    child: Node
    count: Any


@dataclass(frozen=True, eq=False)
class Scheduled:
    """Passes that a schedule arranges: `rule` is the closed form of all from the time of one of each.

    Attributes:
        passes: one of each kind.
        counts: how often a device runs each.
        rule: a formula that is homogeneous of degree one in its arguments.
    """

    passes: tuple[Node, ...]
    counts: tuple[Any, ...]
    rule: Callable[..., Any]


Node = Op | Sequence | Repeat | StepSeries | Overlap | Ends | Idle | Scheduled


def sequence(*children: Node | None) -> Sequence:
    """A sequence of those children that are there."""
    return Sequence(tuple(child for child in children if child is not None))


def time_of(node: Node, leaf: Callable[[Op | Idle], Any]) -> Any:
    """The closed form of a tree's time.

    Args:
        node: the tree.
        leaf: the time of an operation or of an idle term: its own closed form, or a symbol that stands for it.
    """
    match node:
        case Op() | Idle():
            return leaf(node)
        case Sequence(children):
            return sympy.Add(*(time_of(child, leaf) for child in children))
        case Repeat(child, count):
            return count * time_of(child, leaf)
        case StepSeries(child, count) if _has_overlap(child):
            # Work and transfer of the mean step, each times the steps: their maximum is not one of parts of the work.
            return time_of(child, lambda op: leaf(op) if _is_summed(op) else count * leaf(op))
        case StepSeries(child, count):
            return count * time_of(child, lambda op: ZERO if _is_summed(op) else leaf(op)) + time_of(
                child, lambda op: leaf(op) if _is_summed(op) else ZERO
            )
        case Overlap(work, transfer, fraction):
            return overlapped_time(time_of(work, leaf), time_of(transfer, leaf), fraction)
        case Ends(first, last, micro_batches, stages):
            return end_stages_time(time_of(first, leaf), time_of(last, leaf), micro_batches, stages)
        case Scheduled(passes, _, rule):
            return rule(*(time_of(each, leaf) for each in passes))


def _has_overlap(node: Node) -> bool:
    match node:
        case Overlap():
            return True
        case Sequence(children):
            return any(map(_has_overlap, children))
        case Repeat(child, _) | StepSeries(child, _):
            return _has_overlap(child)
        case Ends(first, last, _, _):
            return _has_overlap(first) or _has_overlap(last)
        case Scheduled(passes, _, _):
            return any(map(_has_overlap, passes))
        case _:
            return False


def _is_summed(leaf: Op | Idle) -> bool:
    return isinstance(leaf, Op) and leaf.summed


def closed_form(node: Node) -> Any:
    """The time of a tree in the symbols of its operations."""
    return time_of(node, _own_time)


def _own_time(leaf: Op | Idle) -> Any:
    return leaf.time if isinstance(leaf, Op) else leaf.count * closed_form(leaf.child)


def terms(node: Node) -> dict[str, Op | Idle]:
    """Every operation and idle term of a tree by path, in the order of execution, each once.

    Raises:
        ValueError: two different terms share a path.
    """
    found: dict[str, Op | Idle] = {}
    for leaf in _leaves(node):
        if found.setdefault(leaf.path, leaf) is not leaf:
            raise ValueError(f"two terms are called {leaf.path}")
    return found


def _leaves(node: Node) -> Iterator[Op | Idle]:
    match node:
        case Op() | Idle():
            yield node
        case Sequence(children):
            for child in children:
                yield from _leaves(child)
        case Repeat(child, _) | StepSeries(child, _):
            yield from _leaves(child)
        case Overlap(work, transfer, _):
            yield from _leaves(work)
            yield from _leaves(transfer)
        case Ends(first, last, _, _):
            yield from _leaves(first)
            yield from _leaves(last)
        case Scheduled(passes, _, _):
            for each in passes:
                yield from _leaves(each)


def executions(node: Node) -> dict[str, Any]:
    """How often each operation runs in a step on one device that runs them all, by path."""
    found: dict[str, Any] = {}
    for op, count in count_operations(node).items():
        found[op.path] = found.get(op.path, ZERO) + count
    return found


def count_operations(
    node: Node,
    times: Any = sympy.S.One,
    repeats: Callable[[Any], Any] = lambda count: count,
    share: Any = sympy.S.One,
) -> dict[Op, Any]:
    """How often each operation runs.

    Args:
        node: the tree.
        times: how often the tree runs.
        repeats: how often the child of a `Repeat` and the passes of a `Scheduled` run, from their counts.
        share: part of all devices that have an end of the model.
    """
    found: dict[Op, Any] = {}

    def count(node: Node, times: Any) -> None:
        match node:
            case Op():
                found[node] = found.get(node, ZERO) + times
            case Sequence(children):
                for child in children:
                    count(child, times)
            case Repeat(child, many):
                count(child, times * repeats(many))
            case StepSeries(child, many):
                count(child, times * many)
            case Overlap(work, transfer, _):
                count(work, times)
                count(transfer, times)
            case Ends(first, last, micro_batches, _):
                count(first, times * micro_batches * share)
                count(last, times * micro_batches * share)
            case Scheduled(passes, repeated, _):
                for each, many in zip(passes, repeated, strict=True):
                    count(each, times * repeats(many))
            case Idle():
                pass

    count(node, times)
    return found


def part(node: Node, keep: Callable[[Op], bool]) -> Node:
    """The tree of those operations that are kept; what ran beside one that is not kept runs alone."""
    return _part(node, keep) or Sequence(())


def _part(node: Node, keep: Callable[[Op], bool]) -> Node | None:
    match node:
        case Op():
            return node if keep(node) else None
        case Sequence(children):
            kept = tuple(found for child in children if (found := _part(child, keep)) is not None)
            return Sequence(kept) if kept else None
        case Repeat(child, count):
            found = _part(child, keep)
            return None if found is None else Repeat(found, count)
        case Overlap(work, transfer, fraction):
            first, second = _part(work, keep), _part(transfer, keep)
            return Overlap(first, second, fraction) if first and second else first or second
        case _:
            raise TypeError(f"a pass has no {type(node).__name__}")


def substitute(node: Node, forms: Mapping[Any, Any]) -> Node:
    """The tree with symbols replaced by closed forms in every time, demand and count; operations stay one term each."""
    return replace_symbols(node, forms)
