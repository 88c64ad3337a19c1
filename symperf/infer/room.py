"""What fits on the devices of a replica: sequences, tokens and blocks of the cache, and the longest context.

One truth for all verbs, by the memory of what the software does: it reserves for the largest step that it runs, and
gives the cache its part of the rest. Software that prefills all prompts at once needs memory for each of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ..codegen.interpret import floats, run
from ..common.artefacts import load_or_make_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..codegen.program import Program
    from .memory_rule import Rule
    from .structure import InferenceStructure

LONGEST = 2**40
"""Sequences, or tokens of a prompt, beyond which none are sought."""


@lru_cache(maxsize=64)
def parts_program(structure: InferenceStructure) -> Program:
    """A small program of the parts of a replica's memory, and of a sequence's cache."""

    def make() -> Program:
        from ..codegen.lower import lower
        from ..formulas.generation.decode import paged_tokens
        from ..formulas.language.symbols import generate, kv_block, prompt, strip_units
        from .footprint import parts

        tokens = (1 if structure.architecture.stacks == 2 else prompt) + generate
        found = {**parts(structure), "slots": paged_tokens(tokens, kv_block)}
        return lower([], {name: strip_units(form) for name, form in found.items()})

    return load_or_make_program("memory parts", structure.key(), make)


@lru_cache(maxsize=64)
def _budget_program(rule: Rule) -> Program:
    def make() -> Program:
        from ..codegen.lower import lower
        from ..formulas.language.symbols import held_bytes, rest_bytes, runtime_bytes
        from .footprint import budget_of

        return lower([], {"budget": budget_of(rule, held_bytes, runtime_bytes, rest_bytes)})

    return load_or_make_program("budget of the cache", rule, make)


def _evaluate(program: Program, values: Mapping[str, float]) -> dict[str, float]:
    found = run(program, values, floats())
    return {name: float(found[at]) for name, at in program.outputs.items()}


@dataclass(frozen=True)
class Room:
    """Bytes on the fullest device of a replica.

    Attributes:
        weights: of the model, and of a draft model.
        runtime: of driver, libraries, recorded graphs and framework.
        reserved: for the largest step that the software runs.
        prompt: for each sequence, where all prompts are prefilled at once.
        sequence: cache and states of one sequence.
        slots: tokens of a sequence in whole blocks.
        block: tokens of a block.
        capacity: of the device.
        utilization: the part that the software takes.
        rule: what it is a part of.
        growing: whether more tokens take more cache.
        shared: of the cache, what all sequences have in common.
    """

    weights: float
    runtime: float
    reserved: float
    prompt: float
    sequence: float
    slots: float
    block: float
    capacity: float
    utilization: float
    rule: Rule
    growing: bool = True
    shared: float = 0.0

    @classmethod
    def of(cls, structure: InferenceStructure, values: Mapping[str, float]) -> Room:
        """The room of a structure at the values of its symbols."""
        found = _evaluate(parts_program(structure), values)
        longer = _evaluate(
            parts_program(structure), {**values, "generate": values["generate"] + 2 * values["kv_block"]}
        )
        return cls(
            **found,
            block=values["kv_block"],
            capacity=values["memory_capacity"],
            utilization=values["memory_utilization"],
            rule=structure.memory_rule,
            growing=longer["sequence"] > found["sequence"],
        )

    def beside(self, other: Room, count: int = 1) -> Room:
        """With the weights, the steps and the caches of other models, all alike, that the same process runs."""
        added = {
            name: getattr(self, name) + count * getattr(other, name)
            for name in ("weights", "reserved", "prompt", "sequence")
        }
        return replace(self, **added)

    @property
    def fixed(self) -> float:
        """Bytes that are there whatever is served."""
        return self.weights + self.runtime + self.reserved

    @property
    def each(self) -> float:
        """Bytes of each sequence."""
        return self.prompt + self.sequence

    def budget(self, sequences: float = 0) -> float:
        """Bytes that the cache may have, beside the prompts of so many sequences: its share, or what is left."""
        rest = self.fixed + self.prompt * sequences
        values = {
            "held_bytes": self.weights,
            "runtime_bytes": self.runtime,
            "rest_bytes": rest,
            "memory_capacity": self.capacity,
            "memory_utilization": self.utilization,
        }
        return min(_evaluate(_budget_program(self.rule), values)["budget"], self.capacity - rest)

    @cached_property
    def available(self) -> float:
        """Bytes for the cache of as many sequences as fit, at least one; below 0 where not even the rest fits."""
        return self.budget(max(1, self.sequences))

    def fits(self, sequences: float) -> bool:
        """Whether so many sequences fit."""
        return self.shared + sequences * self.sequence <= self.budget(sequences)

    @cached_property
    def sequences(self) -> int:
        """The most sequences that fit; 0 where not one does."""
        return _most(self.fits) if self.each > 0 else 0

    @property
    def kv_blocks(self) -> int | None:
        """Whole blocks of the cache; None where more tokens take no more cache."""
        if not self.growing:
            return None
        return max(0, math.floor(self.available * self.slots / (self.block * self.sequence)))

    @property
    def kv_tokens(self) -> int | None:
        """Tokens that the blocks of the cache hold; where layers keep less than all, of sequences of this length."""
        return None if self.kv_blocks is None else int(self.kv_blocks * self.block)

    @property
    def concurrency(self) -> float | None:
        """Sequences of this length that the cache holds, parts of one too, as vLLM prints it."""
        return None if self.kv_blocks is None else self.kv_blocks * self.block / self.slots

    def parts(self) -> dict[str, float]:
        """Bytes by name: what is there before any sequence, what the cache may have, and what is left to nobody."""
        prompts, cache = self.prompt * max(1, self.sequences), max(0.0, self.available)
        taken = {
            "weights": self.weights,
            "runtime": self.runtime,
            "activations": self.reserved + prompts,
            "cache": cache,
        }
        return taken | {"unused": max(0.0, self.capacity - sum(taken.values()))}


def longest_context(room: Callable[[int], Room], sequences: int, generate: int) -> int | None:
    """The most tokens of a context, prompt and what is generated, of which so many sequences fit; 0 where none do.

    Args:
        room: of a number of tokens of the prompt.
        sequences: that must fit.
        generate: tokens that are generated.

    Returns:
        None where every length fits.
    """
    most = _most(lambda prompt: room(int(prompt)).fits(sequences), LONGEST)
    return None if most == LONGEST else most + generate if most else 0


def _most(fits: Callable[[float], bool], limit: int = LONGEST) -> int:
    """The largest whole number that fits, of which all smaller ones do; 0 where 1 does not, and at most a limit."""
    low, high = 0, 1
    while high <= limit and fits(high):
        low, high = high, high * 2
    if high > limit:
        return limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
