"""What a framework's file says of a training run, and how its batch and its devices follow from one another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..plans.plan import Plan
from ..plans.stage_layout import spell
from ..plans.structure import COUNTED

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class FrameworkSettings:
    """A training run as a framework's file says it.

    Attributes:
        framework: "megatron", "megatron-bridge", "torchtitan", "deepspeed", "axolotl" or "llama-factory".
        label: of the file.
        fields: of the plan, without `dp` and `zero_shards` where these follow from the number of devices.
        model: a name, a path, or the object of a `config.json`; None where the file names none.
        batch: sequences in the global batch, if it says.
        accumulation: micro-batches of a replica, if it says.
        sequence: tokens in a sequence, if it says.
        devices: in all, if it says.
        deal: how a pipeline's layers are dealt: `each` stage's, how many the `first` and the `last` have less, and
            of `every` how many one is computed again; empty where fields say it.
        copies: of the sharded state, where it is not one.
        stack: the profile of a training software that is nearest.
        flags: what `symperf train` has flags for beside the plan's, by name.
        values: of symbols.
        read: values by key of the file that were read.
        ignored: keys that were not, each with why.
        notes: what was decided where the file leaves it open.
    """

    framework: str
    label: str
    fields: Mapping[str, Any]
    model: str | Mapping[str, Any] | None = None
    batch: int | None = None
    accumulation: int | None = None
    sequence: int | None = None
    devices: int | None = None
    deal: Mapping[str, int] = field(default_factory=dict)
    copies: int = 1
    stack: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def settle(self, over: Mapping[str, Any], layers: int | None = None) -> tuple[dict[str, Any], int | None]:
        """The fields of the plan and the batch, once all that is given is known.

        Args:
            over: fields of the plan that override the file's, and `devices` and `batch`.
            layers: of the model.

        Raises:
            InputError: what is told contradicts itself, or the number of replicas is not told.
        """
        names = {name: value for name, value in over.items() if name not in ("devices", "batch")}
        given = {**self.fields, **names}
        fields = {**given, **self._dealt(given, layers), **names}
        if "every" in self.deal and names.keys().isdisjoint(("recompute", "recompute_layers")):
            fields |= self._recomputed(layers, self.deal["every"], fields.get("pp") or 1)
        batch, devices = over.get("batch", self.batch), over.get("devices", self.devices)
        replica = math.prod(fields.get(name) or 1 for name in ("tp", "pp", "cp"))
        micro_batch = fields.get("micro_batch") or 1
        told = {} if self.batch is None or "batch" in over else {"batch": self.batch}
        if "dp" not in names:
            fields["dp"] = self._replicas(fields.get("dp"), devices, replica, batch, micro_batch)
        share = None if self.accumulation is None else micro_batch * self.accumulation
        if batch is None and share is not None:
            batch = share * fields["dp"]
        elif told and share is not None and not names and share * fields["dp"] != batch:
            raise InputError(
                f"{self.label}: a batch of {batch}, but {micro_batch} sequences x {self.accumulation} micro-batches x "
                f"{fields['dp']} replicas are {share * fields['dp']}, expected one number"
            )
        if self.copies > 1 and "zero_shards" not in names and fields.get("zero"):
            shards, left = divmod(fields["dp"] * (fields.get("cp") or 1), self.copies)
            if left:
                raise InputError(
                    f"{self.label}: {self.copies} copies of the state do not divide dp x cp = "
                    f"{fields['dp']} x {fields.get('cp') or 1}"
                )
            fields["zero_shards"] = shards
        return fields, batch

    def plan(self, layers: int | None = None, **over: Any) -> tuple[Plan, int | None]:
        """The plan and the batch; arguments as of `settle`."""
        fields, batch = self.settle(over, layers)
        return Plan.of(**fields), batch

    def _dealt(self, fields: Mapping[str, Any], layers: int | None) -> dict[str, Any]:
        """The fields that say how layers are dealt to the stages of other fields."""
        pp = fields.get("pp") or 1
        if pp == 1 or layers is None or not self.deal:
            return {}
        first, last = self.deal["first"], self.deal["last"]
        dealt, each = layers + first + last, self.deal.get("each")
        interleaved = fields.get("schedule") == "interleaved"
        count = pp * (1 + interleaved) if each is None else -(-dealt // each)
        vpp, left = divmod(count, pp)
        if left or (vpp > 1) is not interleaved:
            raise InputError(
                f"{self.label}: {each} layers a stage of {layers}, with {first} and {last} less at the ends, make "
                f"{count} stages, expected {'a multiple of ' if interleaved else ''}pp = {pp}"
                f"{' above it' if interleaved else ''}"
            )
        fewest, more = divmod(dealt, pp * vpp)
        if first <= 1 >= last:
            ends = next(name for name, counted in COUNTED.items() if counted == (first, last))
            return {"vpp": vpp, "account_for": ends, "uneven_stages": more > 0}
        if max(first, last) > fewest:
            raise InputError(
                f"{self.label}: the first stage has {first} layers less and the last {last}, expected at most the "
                f"{fewest} of a stage"
            )
        if vpp == 1 and not more and max(first, last) < fewest:
            return {"first_stage_layers": fewest - first, "last_stage_layers": fewest - last}
        held = [fewest + (k < more) for k in range(pp * vpp)]
        held[0], held[-1] = held[0] - first, held[-1] - last
        letters = ["t" * count for count in held]
        return {"vpp": vpp, "layout": spell(["E" + letters[0], *letters[1:-1], letters[-1] + "L"])}

    def _recomputed(self, layers: int | None, every: int, pp: int) -> dict[str, Any]:
        """Which layers of a stage are computed again, where one in so many is."""
        if layers is None:
            raise InputError(f"{self.label}: one of {every} layers is computed again, of how many a model says")
        again = layers // pp // every
        return {"recompute_layers": again} if again else {"recompute": "none"}

    def _replicas(self, dp: int | None, devices: int | None, replica: int, batch: int | None, micro_batch: int) -> int:
        if devices is not None:
            found, left = divmod(devices, replica)
            if left or not found:
                raise InputError(f"{self.label}: {devices} devices, but tp x pp x cp = {replica} does not divide them")
            if dp is not None and dp != found:
                raise InputError(
                    f"{self.label}: {dp} replicas of {replica} devices are {dp * replica}, but there are {devices}"
                )
            return found
        if dp is not None:
            return dp
        if batch is not None and self.accumulation is not None:
            found, left = divmod(batch, micro_batch * self.accumulation)
            if left:
                raise InputError(
                    f"{self.label}: a batch of {batch} is not divisible by {micro_batch} sequences x "
                    f"{self.accumulation} micro-batches"
                )
            return found
        raise InputError(f"{self.label}: does not tell the number of devices; add --devices N, or --dp N")

    def ignores(self, key: str) -> bool:
        """Whether a key was found in the file and passed over, as it was asked for."""
        names = {name.lstrip("-").partition("=")[0] for name in self.ignored}
        return any(name == key.lstrip("-") or name.startswith(f"{key}.") for name in names)

    def lines(self) -> list[str]:
        """What was read, what was not, and what was decided, in words."""
        found = [f"read from {self.label} ({self.framework}): {len(self.read)} settings"]
        if self.ignored:
            reasons: dict[str, list[str]] = {}
            for key, why in self.ignored.items():
                reasons.setdefault(why, []).append(key)
            found += [f"not read, {why}: {', '.join(keys)}" for why, keys in reasons.items()]
        return [*found, *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """The object under `from`."""
        return {
            "file": self.label,
            "framework": self.framework,
            "read": dict(self.read),
            "ignored": dict(self.ignored),
            "notes": list(self.notes),
            "stack": self.stack,
        }
