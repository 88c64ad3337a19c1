"""Common factors and common terms of a graph become nodes of their own, so that they are computed once."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import TYPE_CHECKING

from .graph import parts_of
from .program import JUMPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .graph import Graph

Pair = tuple[int, int]


def share(graph: Graph) -> None:
    """Rewrite the sums and products of a graph in terms of pairs that several of them have in common.

    The pair that most have is taken out first, and is then itself a factor or a term. What a jump reads stays as it is
    written: another order could round it differently, and a `ceil_div` would then be off by one.
    """
    written = _read_by_jumps(graph)
    for kind in ("sum", "product"):
        numbers = [at for at, node in enumerate(graph.nodes) if node[0] == kind and len(node[1]) > 1]
        chains = {at: set(graph.nodes[at][1]) for at in numbers if at not in written}
        # A part that comes more than once, as where units have gone, is shared once and left as often as it is more.
        more = {at: _repeated(graph.nodes[at][1]) for at in chains}
        _take_out_pairs(graph, kind, chains, more)
        for at, parts in chains.items():
            graph.nodes[at] = (kind, tuple(sorted([*parts, *more[at]])))


def _repeated(parts: tuple[int, ...]) -> list[int]:
    """Parts beyond the first of their kind."""
    return list((Counter(parts) - Counter(set(parts))).elements())


def _read_by_jumps(graph: Graph) -> set[int]:
    """All nodes that a jump reads, by way of others too."""
    found: set[int] = set()
    stack = [part for node in graph.nodes if node[0] in JUMPS for part in parts_of(node)]
    while stack:
        at = stack.pop()
        if at not in found:
            found.add(at)
            stack += parts_of(graph.nodes[at])
    return found


def _take_out_pairs(graph: Graph, kind: str, chains: dict[int, set[int]], more: dict[int, list[int]]) -> None:
    """Replace pairs of the parts of chains, the most frequent first, by the node of the pair."""
    holders: dict[Pair, set[int]] = {}
    counts = Counter(part for parts in chains.values() for part in parts)
    for at, parts in chains.items():
        for pair in combinations(sorted(part for part in parts if counts[part] > 1), 2):
            holders.setdefault(pair, set()).add(at)
    queue = [(-len(found), pair) for pair, found in holders.items() if len(found) > 1]
    heapify(queue)
    while queue:
        count, pair = heappop(queue)
        found = holders.get(pair, set())
        if len(found) < 2:
            continue
        if len(found) != -count:  # others were taken out since
            heappush(queue, (-len(found), pair))
            continue
        part = _node_of(graph, kind, pair)
        grown = set()
        for at in sorted(found - {part >> 1}):  # a chain of just the two is the node of the pair
            parts = chains[at]
            for gone in pair:
                for other in parts:
                    if (held := holders.get((gone, other) if gone < other else (other, gone))) is not None:
                        held.discard(at)
            parts.difference_update(pair)
            if part in parts:
                more[at].append(part)
                continue
            for other in parts:
                new = _ordered(part, other)
                holders.setdefault(new, set()).add(at)
                grown.add(new)
            parts.add(part)
        for new in sorted(grown):
            if len(holders[new]) > 1:
                heappush(queue, (-len(holders[new]), new))


def _node_of(graph: Graph, kind: str, pair: Iterable[int]) -> int:
    """The part that stands for a pair: two that are subtracted, or that divide, do so as one."""
    first, second = pair
    if first % 2 and second % 2:
        return 2 * graph.node(kind, (first - 1, second - 1)) + 1
    return 2 * graph.node(kind, (first, second))


def _ordered(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)
