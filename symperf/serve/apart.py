"""Prefill and decode on pools of their own that differ, in devices or layout: what they serve, and times at a load."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from .limits import NEARLY as NEAR
from .limits import Targets, largest_load
from .pools import _decode_load, _decoding_at, _most_decoding, _token_time
from .steady import Steady

if TYPE_CHECKING:
    from .engine import Engine
    from .pools_in_flight import PoolLoop
    from .serving import Serving

CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Loads of the curve, over the least limit."""
NEARLY = 1 - NEAR


@dataclass(frozen=True)
class PoolPoint:
    """Both pools at a load, requests a second; times in seconds.

    Attributes:
        load: of all requests.
        prefill_utilisation: over what the pool that prefills could serve without targets.
        decode_utilisation: likewise of the pool that decodes.
        transfer_utilisation: part of the time in which the links of the busier side move caches.
        ttft_s: mean time to the first token, which the pool that prefills yields.
        tpot_s: mean time of each later token, the transfer of the cache included.
        e2e_s: mean time to the last token.
        decoding: sequences that decode, in all instances.
        output_tokens_per_s_per_device: generated tokens, over the devices of both pools.
    """

    load: float
    prefill_utilisation: float
    decode_utilisation: float
    transfer_utilisation: float
    ttft_s: float
    tpot_s: float
    e2e_s: float
    decoding: float
    output_tokens_per_s_per_device: float


class Apart:
    """Two pools: instances that only prefill, and those of another system or plan that only decode.

    Args:
        prefill: what an instance that prefills is; its plan's `dp` is their number.
        decode: likewise of those that decode; its targets and load are asked of both together.

    Raises:
        InputError: the pools keep caches of different formats, or only one token is generated.
    """

    def __init__(self, prefill: Serving, decode: Serving) -> None:
        self.prefill, self.decode, self.asked = prefill, decode, decode.asked
        if self.asked.generate == 1:
            raise InputError("prefill: found generate = 1, expected at least 2 tokens: nothing is decoded")
        formats = [each.run.bound["kv_bytes"] for each in (prefill, decode)]
        if formats[0][0] != formats[1][0]:
            raise InputError(
                f"prefill: {formats[0][1]} in the pool that prefills and {formats[1][1]} in the one that decodes; "
                "expected one format (kv_precision)"
            )
        self.devices = prefill.plan.devices + decode.plan.devices

    @property
    def fits(self) -> bool:
        """Whether instances of both pools hold the model and one sequence."""
        return self.prefill.fits and self.decode.fits

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of both pools, each once."""
        return tuple(dict.fromkeys((*self.prefill.warnings, *self.decode.warnings)))

    @cached_property
    def first(self) -> Steady:
        """The steady states of an instance that prefills."""
        return Steady(dataclasses.replace(self.prefill.engine(0), generate=1, steps=0.0))

    @cached_property
    def engine(self) -> Engine:
        """An instance that decodes."""
        return self.decode.engine(0)

    @cached_property
    def transfers(self) -> tuple[float, float]:
        """Seconds in which an instance sends a prompt's cache, and in which one receives it."""
        return _transfer(self.prefill), _transfer(self.decode)

    @property
    def transfer_s(self) -> float:
        """Seconds to move a prompt's cache: those of the slower side."""
        return max(self.transfers)

    @cached_property
    def limits(self) -> dict[str, float]:
        """Requests a second that each part serves without targets: "prefill", "decode" and "transfer"."""
        return {
            "prefill": self.prefill.plan.dp * self.first.capacity.load,
            "decode": self.decode.plan.dp * _decode_load(self.engine, float(self.engine.limit)),
            "transfer": min(
                each.plan.dp / time if time else float("inf")
                for each, time in zip((self.prefill, self.decode), self.transfers, strict=True)
            ),
        }

    @cached_property
    def largest(self) -> tuple[float, str] | None:
        """The largest load within the targets, and the part that limits it; None where a target is out of reach."""
        found = largest_load(self.first, Targets(ttft=self.asked.ttft), 0.0).load
        later = self.asked.generate - 1
        target = None if self.asked.tpot is None else self.asked.tpot - self.transfer_s / later
        most = _most_decoding(self.engine, target)
        if found is None or most is None:
            return None
        loads = self.limits | {
            "prefill": self.prefill.plan.dp * found,
            "decode": self.decode.plan.dp * _decode_load(self.engine, most),
        }
        limit = min(loads, key=lambda name: loads[name])
        return loads[limit], limit

    def point(self, load: float) -> PoolPoint | None:
        """All answers at a load; None from the least limit on, where waits have no bound."""
        state = self.first.at_load(load / self.prefill.plan.dp)
        if state is None or load >= min(self.limits.values()) * NEARLY:
            return None
        each = load / self.decode.plan.dp
        others = _decoding_at(self.engine, each, float(self.engine.limit)) if load else 0.0
        later = self.asked.generate - 1
        per_token = _token_time(self.engine, others) + self.transfer_s / later
        tokens = load * self.asked.generate / self.devices
        return PoolPoint(
            load,
            load / self.limits["prefill"],
            load / self.limits["decode"],
            load / self.limits["transfer"],
            state.first_token,
            per_token,
            state.first_token + later * per_token,
            others * self.decode.plan.dp,
            tokens,
        )

    @cached_property
    def answer(self) -> PoolPoint | None:
        """The answers at the load that is asked for, or else at the largest, unless no target limits that."""
        if not self.fits:
            return None
        if self.asked.load is not None:
            return self.point(self.asked.load)
        return None if self.largest is None else self.point(self.largest[0])

    @property
    def served(self) -> bool:
        """Whether the load that is asked for, or some load, is served within the targets."""
        if self.asked.load is None:
            return self.fits and self.largest is not None
        found = self.answer
        if found is None:
            return False
        ttft, tpot = self.asked.ttft, self.asked.tpot
        return (ttft is None or found.ttft_s <= ttft) and (tpot is None or found.tpot_s <= tpot)

    @cached_property
    def curve(self) -> list[PoolPoint]:
        """Points from a light load to nearly the least limit."""
        if not self.fits:
            return []
        points = (self.point(part * min(self.limits.values())) for part in CURVE)
        return [found for found in points if found is not None]

    @cached_property
    def in_flight(self) -> PoolLoop | None:
        """The loop of as many requests in flight as are asked for; None where none are, or not one fits."""
        from .pools_in_flight import pools_in_flight

        workload = self.asked.workload
        if workload.concurrency is None:
            return None
        return pools_in_flight(self, workload.concurrency, workload.requests)

    def to_dict(self) -> dict[str, Any]:
        """Both pools as plain data."""
        largest = self.largest if self.fits else None
        return {
            "prefill": _pool(self.prefill),
            "decode": _pool(self.decode),
            "devices": self.devices,
            "fits": self.fits,
            "served": self.served,
            "transfer_s": self.transfer_s if self.fits else None,
            "limits": self.limits if self.fits else None,
            "largest_load": largest and largest[0],
            "largest_load_limit": largest and largest[1],
            "answer": self.answer and dataclasses.asdict(self.answer),
            "curve": [dataclasses.asdict(each) for each in self.curve],
            "in_flight": self.in_flight and dataclasses.asdict(self.in_flight),
        }


def _pool(serving: Serving) -> dict[str, Any]:
    return {
        "system": serving.run.system.name,
        "stack": serving.run.stack.name,
        "plan": str(serving.plan),
        "instances": serving.plan.dp,
        "devices_of_an_instance": serving.plan.devices // serving.plan.dp,
        "chunk": serving.asked.chunk,
    }


def _transfer(serving: Serving) -> float:
    """Seconds that an instance's links take for a prompt's cache, each device its own part.

    Raises:
        InputError: the system describes no network.
    """
    found = serving.transfer_s
    if found is None:
        raise InputError(
            f"prefill: system {serving.run.system.name} describes no network (scale_up_bandwidth), over which caches "
            "would move from one pool to the other"
        )
    return found


def beside(decode: Serving, text: str) -> Apart:
    """The pools of a system that decodes and of another one that prefills, which is told relative to it.

    Args:
        decode: the pool that decodes, as it would be asked about alone.
        text: what differs in the other: "system: h100-sxm, plan: tp=4 dp=2", as `symperf cross` spells it.

    Raises:
        InputError: a text that is none, another model, an unknown name, or what does not go together.
    """
    from ..analysis.choices import parse_choice
    from ..plans.arguments import load_system
    from ..plans.plan import FIELDS
    from .serving import Serving as _Serving

    if decode.draft is not None:
        raise InputError("prefill: found a draft model, expected none: pools are modelled without speculation")
    found = parse_choice(text, "prefill")
    if found.model is not None:
        raise InputError(f"prefill: found model {found.model}, expected none: both pools run one model")
    run, values = decode.run, dict(found.values)
    plan = dataclasses.replace(run.base_plan, **{name: values.pop(name) for name in list(values) if name in FIELDS})
    options = {"stack": values.pop("stack", run.question["stack"])}
    options["kv_precision"] = values.pop("kv_precision", run.kv_precision)
    asked = dataclasses.replace(decode.asked, chunk=values.pop("chunk", decode.asked.chunk))
    system = run.base_system if found.system is None else load_system(found.system)
    try:
        prefill = _Serving(run.base_model, system, plan, asked, values=run.given | values, **options)
    except InputError as error:
        raise InputError(f"prefill: {error}") from None
    return Apart(prefill, decode)
