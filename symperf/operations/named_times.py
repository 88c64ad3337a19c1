"""The times of many schedule trees in symbols: what several of them run is a form once, and a name everywhere else.

The closed form of a whole step has thousands of parts, of which the steps of other structures have most too. Here the
time of each operation, of each sequence and of each overlap has a symbol of its own, and equal forms have the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels.roofline import overlapped_time
from ..formulas.language.formula import name_results
from ..formulas.language.symbols import stage_number
from ..formulas.parallel.pipeline import end_stages_time
from .schedule import Ends, Idle, Op, Overlap, Repeat, Scheduled, Sequence, StepSeries, time_of

if TYPE_CHECKING:
    from .schedule import Node


class NamedTimes:
    """Symbols for times of nodes.

    >>> from .schedule import sequence
    >>> x, n = sympy.symbols("x n")
    >>> times, op = NamedTimes(), Op("product", x**2)
    >>> times.of(sequence(Repeat(op, n), op)), times.of(sequence(op, Repeat(op, n)))
    (time 1, time 1)
    >>> times.definitions
    [(time 0, x**2), (time 1, n*time 0 + time 0)]
    """

    def __init__(self) -> None:
        self.definitions: list[tuple[Any, Any]] = []
        self._names: dict[Any, Any] = {}
        self._formulas: dict[Any, Any] = {}
        self._times: dict[int, tuple[Node, Any]] = {}

    def of(self, node: Node) -> Any:
        """The time of a tree; nodes are known by identity, and their forms by being equal."""
        if id(node) not in self._times:
            self._times[id(node)] = node, self._of(node)  # the node is kept, so that no other has its number
        return self._times[id(node)][1]

    def _of(self, node: Node) -> Any:
        match node:
            case Op():
                return self.name(node.time)
            case Sequence(children):
                return self.name(sympy.Add(*map(self.of, children)))
            case Repeat(child, count):
                return count * self.of(child)
            case Overlap(work, transfer, fraction):
                return self.name(overlapped_time(self.of(work), self.of(transfer), fraction))
            case Scheduled(passes, _, rule):
                times = [self.of(each) for each in passes]
                with name_results(self._name_result, self._formulas):
                    return self.name(rule(*times))
            case Ends(first, last, micro_batches, stages):
                return end_stages_time(self.of(first), self.of(last), micro_batches, stages)
            case Idle(_, child, count):
                return count * self.of(child)
            case StepSeries():
                return time_of(node, self.of)

    def _name_result(self, form: Any) -> Any:
        """Of a formula that a rule calls; a form in the number of a stage is asked for at several."""
        return form if form.is_Atom or form.has_free(stage_number) else self.name(form)

    def name(self, form: Any) -> Any:
        """The symbol of a form."""
        if form.is_Atom:
            return form
        if form not in self._names:
            name = self._names[form] = sympy.Symbol(f"time {len(self._names)}", nonnegative=True)
            self.definitions.append((name, form))
        return self._names[form]
