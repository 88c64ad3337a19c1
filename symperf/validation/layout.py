"""The plan of a row of training or of memory, from its columns and from what its software is known to do."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..plans.plan import Plan
from ..plans.stage_layout import spell
from ..plans.structure import COUNTED
from .definitions import software_of
from .documents import document_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.model import Model
    from .definitions import TrainingFramework
    from .documents import Document
    from .rows import TableRow

PRECISIONS = (("nvfp4", "fp4"), ("fp4", "fp4"), ("fp8", "fp8"), ("float8", "fp8"), ("bf16", "bf16"), ("fp16", "fp16"))
"""What a text of the column `precision` holds -> the precision of the products; the first that it holds."""
MIXED_16 = re.compile(r"fp16\s*/\s*bf16|bf16\s*/\s*fp16")
RECOMPUTE = (
    ("selective op", "op"),
    ("selective layer", "midway"),
    ("selective (recipe", "op"),
    ("selective:", "modules"),
    ("selective", "selective"),
    ("qkv_proj offloaded", "full"),
    ("minimal", "none"),
    ("no recompute", "none"),
    ("full", "full"),
    ("sequence parallel", "none"),
)
"""What a text of the column `recompute` holds -> the mode; the first that fits. "op": every second product and all that
is no product is computed again (torchtitan's selective op, which its recipes have); "modules": those that follow;
"midway": every second layer, the middle of none and full. MaxText's "minimal" keeps every product."""
SHARDING = (("grad_op", 2), ("fsdp", 3), ("full_shard", 3), ("distributed optimizer", 1), ("ddp", 0))
"""What a text of the column `sharding` holds that names no ZeRO stage -> the stage; the first that fits. Megatron's
distributed optimizer shards the optimizer's state (docs/source/api-guide/dist_optimizer.md of Megatron-LM)."""
MODES = ("none", "selective", "full")
NOTHING = ("", "no", "off", "false")
"""Texts that, like those that begin with "none", say that nothing is computed again."""


@dataclass(frozen=True)
class RowLayout:
    """How a row's work is laid out.

    Attributes:
        plan: of the run.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        rest: fields of the plan of the rest of the layers, where not all run alike; time and memory are means.
        share: of the layers that are the rest.
        choices: every plan that the row leaves open, if it does not say the micro-batch or the chunks of a stage.
    """

    plan: Plan
    batch: int
    sequence: int
    rest: Mapping[str, Any]
    share: float
    choices: tuple[Plan, ...] = ()


def layout_of(row: TableRow, model: Model, *, memory_only: bool = False) -> RowLayout:
    """How a row's work is laid out.

    Args:
        row: of a table.
        model: of the row.
        memory_only: no time is asked for: without a global batch there are as many micro-batches as fill the stages.

    Raises:
        InputError: the row does not say enough, or contradicts itself.
    """
    said, software = document_of(row), software_of(row.text("framework"))
    if software.left_out:
        raise InputError(software.left_out)
    degrees = degrees_of(row, software)
    sequence = row.whole("seq_len_tokens") or row.whole("sequence")
    if sequence is None:
        raise InputError("the row gives no sequence length")
    batch, micro = batch_of(row, said, software, degrees, sequence, memory_only=memory_only)
    mode = recompute_of(row.text("recompute") or software.recompute)
    fields: dict[str, Any] = {"sequence_parallel": software.sequence_parallel and degrees["tp"] > 1}
    fields |= {**software.plan, **said.plan, **sharding_of(row, software, degrees)}
    fields |= adapters_of(row, software)
    fields |= {name: value for name, value in degrees.items() if value > 1}
    fields |= software.staged_plan if degrees["pp"] > 1 else {}
    fields["precision"] = precision_of(row.text("precision"))
    fields |= recomputation(mode, row.text("recompute"))
    told = f"{row.text('recompute')} {row.text('precision')} {row.text('sequence_parallel')}".casefold()
    if "sequence parallel" in told or "true" in told.split():
        fields["sequence_parallel"] = True
    if "torch.compile" in f"{told} {row.text('framework').casefold()}":
        fields["compiled"] = True
    if "async tp" in f"{told} {row.text('note').casefold()}":
        fields["overlap_tp"] = 1.0
    if software.deduplicated and model.architecture.routed and not model.architecture.grouped_routing:
        fields.setdefault("node_limit", -(-fields.get("ep", 1) // (row.whole("devices_per_node") or 8)))
    if fields.get("node_limit") == 0:
        del fields["node_limit"]  # a plain all-to-all
    open_chunks = row.whole("vpp") is None and not {"vpp", "schedule"} & set(fields) and not software.micro_batches
    stages(fields, model)
    if fields.get("vpp", 1) > 1 or (open_chunks and degrees["pp"] > 1):
        fields |= software.interleaved_plan
    layers = model.sizes["num_layers"]
    plan = Plan.of(micro_batch=micro or 1, **fields)
    choices = () if memory_only else choices_of(plan, batch, layers, open_micro=micro is None, open_chunks=open_chunks)
    rest, share = rest_of(row, mode, layers)
    return RowLayout(plan, batch, sequence, rest, share, choices)


def rest_of(row: TableRow, mode: str, layers: int) -> tuple[Mapping[str, Any], float]:
    """Fields of the plan of some layers alone, and the share of the layers that they are.

    Every second layer is computed again ("midway"), or the host keeps the activations of the first ones
    (`offloaded_layers`, Transformer Engine's cpu_offloading_num_layers): layers that follow one another, each of which
    takes the longer of its work and its transfers.

    Raises:
        InputError: more layers than there are.
    """
    if mode == "midway":
        return {"recompute": "full"}, 0.5
    if (count := row.whole("offloaded_layers")) is None:
        return {}, 0.0
    if count > layers:
        raise InputError(f"offloaded_layers: found {count}, expected at most the {layers} layers of the model")
    return {"offload": "activations"}, count / layers


def adapters_of(row: TableRow, software: TrainingFramework) -> dict[str, Any]:
    """Fields of the plan that say which adapters a row trains; none where it trains all weights.

    Raises:
        InputError: it trains some, and neither it nor its software says which.
    """
    rank = row.whole("lora_rank")
    if rank is None and "lora" not in row.text("task").casefold():
        return {}
    told = {name: row.text(name) or None for name in ("lora_targets", "base_precision")}
    found = {**software.adapted, **{name: value for name, value in told.items() if value}}
    found |= {"lora_rank": rank} if rank else {}
    if "lora_rank" not in found:
        raise InputError("the row does not say which adapters are trained")
    return found


def degrees_of(row: TableRow, software: TrainingFramework) -> dict[str, int]:
    """The parallel degrees of a row.

    Raises:
        InputError: they are not given, or do not multiply to the devices.
    """
    found = {name: row.whole(name) for name in ("tp", "pp", "vpp", "cp", "ep")}
    devices = row.whole("num_devices") or row.whole("devices")
    dp = row.whole("dp")
    told = dp or row.text("sharding") or software.shards_all or devices == 1
    if not told and (found["tp"] is None or found["pp"] is None):
        raise InputError("the row gives no parallel degrees")
    degrees = {name: value or 1 for name, value in found.items()}
    if degrees["pp"] == 1:
        degrees["vpp"] = 1
    elif found["vpp"] is None and "interleaved" in row.text("note").casefold():
        degrees["vpp"] = software.looped_chunks
    if degrees["ep"] > 1 and (expert_tp := row.whole("etp") or (software.dealt_experts_split and degrees["tp"])):
        degrees["expert_tp"] = expert_tp
    replica = degrees["tp"] * degrees["pp"] * degrees["cp"]
    if devices is None:
        if dp is None:
            raise InputError("the row gives no number of devices")
        devices = replica * dp
    if devices % replica or (dp is not None and dp * replica != devices):
        raise InputError("tp x pp x cp x dp is not the number of devices")
    return degrees | {"dp": devices // replica}


def batch_of(
    row: TableRow,
    said: Document,
    software: TrainingFramework,
    degrees: dict[str, int],
    sequence: int,
    *,
    memory_only: bool,
) -> tuple[int, int | None]:
    """Sequences of the global batch, and of a micro-batch if they are told.

    Raises:
        InputError: they are not given, or contradict each other.
    """
    dp, pp = degrees["dp"], degrees["pp"]
    micro, steps = row.whole("micro_batch_seqs") or row.whole("micro_batch"), row.whole("grad_accum")
    batch = row.whole("global_batch_seqs") or row.whole("batch")
    if micro is not None and software.batch_of_device:
        micro *= degrees["tp"]
    if batch is None and said.batch_tokens:
        batch = said.batch_tokens // sequence
    if batch is None and micro is not None and (steps is not None or pp == 1):
        batch = micro * dp * (steps or 1)
    if batch is None and memory_only:
        batch = (micro or 1) * dp * pp
    if batch is None:
        raise InputError("the row gives no global batch")
    if batch % dp:
        raise InputError("the replicas do not divide the global batch")
    if micro is None and (parts := steps or (pp if software.micro_batches == "stages" else 0)):
        micro = max(batch // dp // parts, 1)
    if batch % ((micro or 1) * dp) or (steps is not None and (micro or 1) * steps * dp != batch):
        raise InputError("micro_batch_seqs x grad_accum x dp is not the global batch")
    return batch, micro


def choices_of(plan: Plan, batch: int, layers: int, *, open_micro: bool, open_chunks: bool) -> tuple[Plan, ...]:
    """The plans with every micro-batch and every number of chunks that divide the work; none where nothing is open."""
    open_chunks = open_chunks and plan.pp > 1 and layers % plan.pp == 0
    if not (open_micro or open_chunks):
        return ()
    micros = divisors(batch // plan.dp) if open_micro else [plan.micro_batch]
    chunks = divisors(layers // plan.pp) if open_chunks else [plan.vpp]
    hidden = {vpp: plan.overlap_pp if vpp > 1 else 0.0 for vpp in chunks} if open_chunks else {}
    return tuple(
        dataclasses.replace(plan, micro_batch=micro, vpp=vpp, overlap_pp=hidden.get(vpp, plan.overlap_pp))
        for vpp in chunks
        for micro in micros
    )


def divisors(number: int) -> list[int]:
    """The whole numbers that divide a number.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [part for part in range(1, math.isqrt(number) + 1) if number % part == 0]
    return small + [number // part for part in reversed(small) if part * part != number]


def sharding_of(row: TableRow, software: TrainingFramework, degrees: dict[str, int]) -> dict[str, Any]:
    """The ZeRO stage that a text of the column `sharding` means, and how many replicas share a copy.

    Raises:
        InputError: the text is not known.
    """
    text = row.text("sharding")
    folded = text.casefold()
    if not folded and not software.shards_all:
        return {}
    if found := re.search(r"zero-?([0-3])", folded):
        zero = int(found[1])
    elif "optimizer+gradient" in folded:
        zero = software.plan.get("zero", 2)
    else:
        zero = next((stage for part, stage in SHARDING if part in folded), -1) if folded else 3
    if zero < 0:
        expected = "ZeRO-0 to ZeRO-3, FSDP, FULL_SHARD, SHARD_GRAD_OP, a distributed optimizer or DDP"
        raise InputError(f"sharding: found {quote(text)}, expected one that holds {expected}")
    replicas = degrees["dp"] * degrees["cp"]
    shards = re.search(r"(?:fsdp2?|zero-?[1-3])(?: group)? (\d+)", folded)
    shards = shards or re.search(r"slice\(s\) of (\d+) chips", row.text("note"))
    count = int(shards[1]) * (degrees["cp"] if "fsdp" in shards[0] else 1) if shards else replicas
    return {"zero": zero} | ({"zero_shards": count} if count < replicas and replicas % count == 0 else {})


def precision_of(text: str) -> str | None:
    """The precision of the products that a text means; None where it says none, or either 16-bit format."""
    folded = text.casefold()
    if not folded or MIXED_16.search(folded):
        return None
    if " or " in folded:
        raise InputError("the row gives two precisions")
    found = next((name for part, name in PRECISIONS if part in folded), None)
    if found is None:
        raise InputError(f"precision: found {quote(text)}, expected one that holds bf16, fp16, fp8 or fp4")
    return found


def recompute_of(text: str) -> str:
    """The mode of recomputation that a text means: a mode of the plan, or "midway", "op" or "modules".

    Raises:
        InputError: the text is not known.
    """
    folded = text.casefold()
    if folded in NOTHING or folded.startswith("none"):
        return "none"
    mode = next((mode for part, mode in RECOMPUTE if part in folded), None)
    if mode is None:
        raise InputError(f"recompute: found {quote(text)}, expected none, selective or full{nearest(folded, MODES)}")
    if mode == "selective" and "," in folded:
        raise InputError(f"recompute: found {quote(text)}, expected modules behind a colon")
    return mode


def recomputation(mode: str, text: str) -> dict[str, Any]:
    """The fields of the plan that a mode means, with the modules that a text names.

    >>> recomputation("modules", "selective: mla_up_proj, mlp")
    {'recompute': 'selective', 'recompute_modules': 'mla_up_proj,mlp'}
    """
    if mode == "op":
        return {"recompute": "selective", "recompute_modules": "op"}
    if mode == "modules":
        names = [part.strip() for part in text.casefold().partition(":")[2].split(",")]
        return {"recompute": "selective", "recompute_modules": ",".join(names)}
    return {"recompute": "none" if mode == "midway" else mode}


def stages(fields: dict[str, Any], model: Model) -> None:
    """Deal layers to stages: what a plan says of those that are not equal.

    With one chunk a stage they differ by a layer at most. Virtual stages that layers do not fill leave the last place
    to the loss, or the first one to the embedding too, as NeMo and Llama 3 do; where that does not fill them either,
    the first ones have a layer more.
    """
    layers, pp, vpp = model.sizes["num_layers"], int(fields.get("pp", 1)), int(fields.get("vpp", 1))
    if pp == 1:
        fields.pop("vpp", None)
    elif {"layout", "account_for", "first_stage_layers"} & set(fields) or layers % (pp * vpp) == 0:
        return
    elif vpp == 1:
        fields["uneven_stages"] = True
    elif ends := next((name for name in ("loss", "both") if (layers + sum(COUNTED[name])) % (pp * vpp) == 0), None):
        fields["account_for"] = ends
    else:
        fields["layout"] = even_layout(layers, pp * vpp, model.sizes.get("num_multi_token_layers", 0))


def even_layout(layers: int, stages: int, modules: int = 0) -> str:
    """A layout in which stages differ by a layer at most; the first ones have more.

    >>> even_layout(10, 4)
    'Et*3|t*3|t*2|t*2L'
    """
    held = ["t" * (layers // stages + (stage < layers % stages)) for stage in range(stages)]
    held[0] = "E" + held[0]
    held[-1] += "m" * modules + "L"
    return spell(held)
