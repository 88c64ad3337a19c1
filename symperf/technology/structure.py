"""What gives the closed forms of a chip their shape."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChipStructure:
    """What gives the closed forms of a chip their shape.

    Attributes:
        counted: the number of cores is given; else an area holds them.
        stacked: the number of memory stacks is given; else package and controllers hold them.
        memory_law: the clock of memory links follows from a voltage; else from a standard.
        scale_up: "none", "lanes" (a standard's) or "law".
        scale_out: "none", "adapter" (lanes that do not leave the die) or "law".
    """

    counted: bool
    stacked: bool
    memory_law: bool
    scale_up: str
    scale_out: str

    def key(self) -> str:
        """The structure as canonical text."""
        parts = (self.counted, self.stacked, self.memory_law, self.scale_up, self.scale_out)
        return "/".join(map(str, parts))
