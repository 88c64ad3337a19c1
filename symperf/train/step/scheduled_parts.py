"""Passes of a schedule under names, by which its rule asks for their times, and what the model's ends add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import above_one
from ...formulas.language.symbols import pp
from ...formulas.memory import stage_memory as each
from ...operations.schedule import ZERO, Scheduled, part
from ..memory.multi_token_counts import is_stage
from .passes import of_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...operations.schedule import Node
    from .step import TrainingStep

FORWARD, BACKWARD, INPUTS, WEIGHTS = "forward", "backward", "inputs", "weights"


class Parts:
    """Passes under names, by which a rule asks for their times.

    Args:
        hosted: what the host's pace makes of a pass, by the last part of its name.
    """

    def __init__(self, hosted: Callable[[str, Node], Node] = lambda _, node: node) -> None:
        self.hosted = hosted
        self.nodes: dict[str, Node] = {}
        self.counts: list[Any] = []

    def add(self, name: str, node: Node, count: Any = ZERO) -> None:
        """A pass that is run `count` times."""
        self.nodes[name] = self.hosted(name.rpartition("/")[2], node)
        self.counts.append(count)

    def add_passes(self, name: str, passes: tuple[Node, Node], count: Any = ZERO) -> None:
        """A forward pass, and a backward one in gradients of inputs and of weights."""
        forward, backward = passes
        self.add(f"{name}/{FORWARD}", forward, count)
        self.add(f"{name}/{INPUTS}", part(backward, lambda op: not of_weights(op)), count)
        self.add(f"{name}/{WEIGHTS}", part(backward, of_weights), count)

    def scheduled(self, rule: Callable[[Mapping[str, Any]], Any]) -> Scheduled:
        """All passes, with a rule from their times by name."""
        names = tuple(self.nodes)
        return Scheduled(
            tuple(self.nodes.values()),
            tuple(self.counts),
            lambda *times: rule(dict(zip(names, times, strict=True))),
        )

    def add_ends(self, step: TrainingStep, count: Any) -> None:
        """Both passes of what the first and the last stage have beside layers, and of modules elsewhere."""
        for end, passes in step.end_passes().items():
            for phase, node in zip((FORWARD, BACKWARD), passes, strict=True):
                self.add(f"{end}/{phase}", node, count)


class Sides:
    """The times of what stages have beside layers: embedding, head, and modules where a layout has them apart.

    Args:
        times: of passes, by name.
        at: number of the stage with the modules; 0 where they are with the head.
    """

    def __init__(self, times: Mapping[str, Any], at: int) -> None:
        self.times, self.at = times, sympy.Integer(at)

    def all(self, *phases: str) -> Any:
        """The time of some passes on all stages."""
        return self._of("first", phases) + self._of("modules", phases) + self._of("last", phases)

    def on(self, number: Any, *phases: str) -> Any:
        """On one stage."""
        first, last = each.is_first_stage(number), each.is_last_stage(number, pp)
        here = is_stage(number, self.at) if self._apart else ZERO
        return first * self._of("first", phases) + here * self._of("modules", phases) + last * self._of("last", phases)

    def before(self, number: Any, *phases: str) -> Any:
        """On the stages before one."""
        apart = above_one(number / self.at) * self._of("modules", phases) if self._apart else ZERO
        return above_one(number) * self._of("first", phases) + apart

    def behind(self, number: Any, *phases: str) -> Any:
        """On the stages behind one."""
        apart = above_one(self.at / number) * self._of("modules", phases) if self._apart else ZERO
        return above_one(pp / number) * self._of("last", phases) + apart

    @property
    def _apart(self) -> bool:
        return f"modules/{FORWARD}" in self.times

    def _of(self, end: str, phases: tuple[str, ...]) -> Any:
        return sum((self.times.get(f"{end}/{phase}", ZERO) for phase in phases), ZERO)
