"""Prefill and decode on instances of their own: what each serves within the targets, and the best division."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .limits import Targets, largest_load
from .program import form
from .steady import Steady

if TYPE_CHECKING:
    from ..runs.inference_run import InferenceRun
    from .engine import Engine


@dataclass(frozen=True)
class Pools:
    """Instances that only prefill, and instances that only decode; loads are requests in a second.

    Attributes:
        prefill_load: what an instance that prefills serves within the target of the first token.
        decode_load: what one that decodes serves within the target of later tokens.
        decoding: sequences that it holds.
        transfer_s: seconds to send a prompt's cache from one to the other; it delays the second token.
        decode_share: best part of the instances that decode.
        load_per_instance: requests in a second for each instance at that division.
        prefill_instances: of the best division of all instances into whole ones; None where there is only one.
        decode_instances: likewise.
        load: requests in a second of that division.
        ttft_s: mean time to the first token at that load; None where it is the capacity.
        tpot_s: mean time of each later token, the transfer included.
    """

    prefill_load: float
    decode_load: float
    decoding: float
    transfer_s: float
    decode_share: float
    load_per_instance: float
    prefill_instances: int | None
    decode_instances: int | None
    load: float | None
    ttft_s: float | None
    tpot_s: float | None


def pools(engine: Engine, targets: Targets, transfer: float, instances: int) -> Pools | None:
    """The pools of an engine's instances; None where a target cannot be met, or nothing is decoded.

    Args:
        engine: an instance that could do both.
        targets: of mean times.
        transfer: seconds to send a prompt's cache.
        instances: to divide.
    """
    if engine.generate == 1:
        return None
    first = Steady(dataclasses.replace(engine, generate=1, steps=0.0))
    prefill = largest_load(first, Targets(ttft=targets.ttft), 0.0).load
    per_token = None if targets.tpot is None else targets.tpot - transfer / (engine.generate - 1)
    decoding = _most_decoding(engine, per_token)
    if prefill is None or decoding is None:
        return None
    decode = _decode_load(engine, decoding)
    share = form("decode_pool_share", prefill_load=prefill, decode_load=decode)
    balanced = form("balanced_pool_load", prefill_load=prefill, decode_load=decode)
    found = Pools(prefill, decode, decoding, transfer, share, balanced, None, None, None, None, None)
    if instances < 2:
        return found
    split = _split_instances(instances, share, prefill, decode)
    load = min((instances - split) * prefill, split * decode)
    state = first.at_load(load / (instances - split))
    others = _decoding_at(engine, load / split, decoding)
    tpot = _token_time(engine, others) + transfer / (engine.generate - 1)
    return dataclasses.replace(
        found,
        prefill_instances=instances - split,
        decode_instances=split,
        load=load,
        ttft_s=None if state is None else state.first_token,
        tpot_s=tpot,
    )


def transfer_time(run: InferenceRun, cache_bytes: float) -> float | None:
    """Seconds to send a cache to other devices, over the widest network; None without one."""
    if not run.system.tiers:
        return None
    given, tier = run.bound, run.system.tiers[-1]
    return form(
        "cache_transfer_time",
        cache_bytes=cache_bytes,
        link_bandwidth=given[f"{tier}_bandwidth"][0] * given[f"{tier}_efficiency"][0],
        link_latency=given[f"{tier}_latency"][0],
    )


def _split_instances(instances: int, share: float, prefill: float, decode: float) -> int:
    """The whole number of instances that decode next to the best share which serves more."""
    near = math.floor(share * instances)
    choices = [min(max(count, 1), instances - 1) for count in (near, near + 1)]
    return max(choices, key=lambda count: min((instances - count) * prefill, count * decode))


def _token_time(engine: Engine, others: float) -> float:
    """Mean time of a token where a sequence decodes beside others; full memory holds no more."""
    return _step_time(engine, others) * engine.steps / (engine.generate - 1)


def _step_time(engine: Engine, others: float) -> float:
    """A step of a sequence that decodes beside others; of ranks in lock step that of the fullest."""
    present = 1 + others
    if engine.ranks > 1:
        present = form("fullest_rank_sequences", decoding=present, ranks=engine.ranks)
    return engine.times.decode(min(present, max(1.0, engine.limit)))


def _decode_load(engine: Engine, others: float) -> float:
    step = _step_time(engine, others)
    return form("decode_pool_load", decoding=others, decode_steps=engine.steps, decode_time=step)


def _most_decoding(engine: Engine, target: float | None) -> float | None:
    """The most sequences that decode within the target; None where not even one does."""
    if target is None or _token_time(engine, engine.limit) <= target:
        return float(engine.limit)
    low, high = 0.0, float(engine.limit)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _token_time(engine, middle) <= target else (low, middle)
    return low if low > 1e-9 else None


def _decoding_at(engine: Engine, load: float, most: float) -> float:
    """The sequences that decode at a load."""
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _decode_load(engine, middle) >= load else (middle, high)
    return high
