"""Arguments of Megatron-LM as a plan: what each means, with the framework's own defaults where one is left out.

Names, defaults and what excludes what are those of `megatron/training/arguments.py` (`export.megatron.ARGUMENTS`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from ..plans.stage_layout import stages_of
from ..plans.structure import COUNTED
from .keys import Keys
from .megatron_keys import KERNELS, WITHOUT_COST
from .megatron_model import MODEL, config_of
from .profiles import profile_of
from .settings import FrameworkSettings
from .shell import shell_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SWITCHES: Final = (
    *("--sequence-parallel", "--use-tp-pp-dp-mapping", "--recompute-activations", "--use-distributed-optimizer"),
    *("--use-megatron-fsdp", "--use-custom-fsdp", "--use-torch-fsdp2", "--overlap-grad-reduce", "--bf16", "--fp16"),
    *("--overlap-param-gather", "--use-flash-attn", "--optimizer-cpu-offload", "--use-precision-aware-optimizer"),
    *("--grad-reduce-in-bf16", "--swiglu", "--squared-relu", "--quick-geglu", "--group-query-attention"),
    *("--disable-bias-linear", "--add-qkv-bias", "--untie-embeddings-and-output-weights", "--qk-layernorm"),
    *("--use-rotary-position-embeddings", "--multi-latent-attention", "--distribute-saved-activations"),
    *("--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split", "--no-bias-swiglu-fusion"),
    *("--apply-layernorm-1p", "--no-position-embedding", "--moe-grouped-gemm", "--moe-permute-fusion"),
    *(
        "--cross-entropy-loss-fusion",
        "--tp-comm-overlap",
        "--moe-enable-deepep",
        "--no-overlap-p2p-communication",
        "--accumulate-allreduce-grads-in-fp32",
        "--fp32-residual-connection",
    ),
)
MANY: Final = (
    "--recompute-modules",
    "--offload-modules",
    "--cp-comm-type",
    "--hierarchical-context-parallel-sizes",
    "--data-path",
)
CONTEXT: Final = {"p2p": "ring", "a2a": "all-to-all", "allgather": "all-gather"}
ATTENTION: Final = {"flash": "flash", "fused": "flash", "unfused": "eager", "local": "eager", "auto": "flash"}
STRATEGIES: Final = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
OPTIMIZERS: Final = {"adam": "adam", "sgd": "sgd-momentum", "muon": "muon", "dist_muon": "muon"}
WIDTHS: Final = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
"""Bytes of an element."""


def read_text(text: str, label: str, ignore: Iterable[str], *, model: bool) -> FrameworkSettings:
    """The settings in a command line or a script."""
    options = shell_options(text, label, SWITCHES, MANY)
    return read(options, label, {f"--{name.lstrip('-')}" for name in ignore}, model=model)


def read(
    options: Mapping[str, Any], label: str, ignore: Iterable[str], *, model: bool, framework: str = "megatron"
) -> FrameworkSettings:
    """The settings of options by name.

    Args:
        options: values by name.
        label: of the file.
        ignore: options that are read as if they were not there.
        model: whether the model is named elsewhere, so that the options that describe one are not read.
        framework: whose file it is.
    """
    keys = Keys(framework, label, options, ignore)
    for name, why in REFUSED.items():
        keys.refuse(name, why)
    layers = keys.count("--num-layers", "--encoder-num-layers")
    fields = _degrees(keys) | _batch(keys) | _recomputation(keys) | _sharding(keys)
    fields |= _loss(keys) | _stages(keys, fields["pp"], layers) | _numbers(keys)
    fields |= _overlap(keys, fields["zero"]) | _transfers(keys, fields["vpp"], framework)
    values = _state(keys) | _offload(keys, fields, layers)
    some = fields.pop("recomputed")
    if some is not None and (layers is None or some * fields["vpp"] * fields["pp"] < layers):
        fields["recompute_layers"] = some * fields["vpp"]
    copies = keys.count("--num-distributed-optimizer-instances") or 1
    found = None if model else config_of(keys, layers)
    if model:
        for name in keys.data:
            if name in MODEL and name not in keys.read:
                keys.ignored[name] = "the model is named apart"
                keys.read[name] = keys.data[name]
        keys.read = {name: value for name, value in keys.read.items() if name not in keys.ignored}
    for name in keys.data:
        if re.fullmatch("|".join(KERNELS.split()), name) and name not in keys.read:
            keys.ignored[name] = "a choice of kernels, which the profile (--stack) tells"
    keys.data = {name: value for name, value in keys.data.items() if name not in keys.ignored}
    processes = keys.count("--nproc-per-node", "--nproc_per_node")
    nodes = keys.count("--nnodes")
    devices = None if processes is None else processes * (nodes or 1)
    sequence, batch = keys.count("--seq-length", "--encoder-seq-length"), keys.count("--global-batch-size")
    stack = _exchange(keys, fields["ep"])
    keys.finish(WITHOUT_COST)
    return FrameworkSettings(
        keys.framework,
        label,
        fields,
        found,
        batch,
        1 if batch is None else None,
        sequence,
        devices,
        copies=copies,
        stack=stack,
        values=values,
        read=keys.read,
        ignored=keys.ignored,
        notes=tuple(keys.notes),
    )


HIDDEN_EXCHANGE: Final = 0.37
"""Part of experts' transfers that ran beside other work, of Qwen3-30B-A3B on 16 H100 (docs/training.md)."""
REFUSED: Final = {
    "--distribute-saved-activations": "saved activations that are split over tp are not modelled",
    "--hierarchical-context-parallel-sizes": "attention over parts of two levels is not modelled",
    "--pipeline-model-parallel-split-rank": "encoders on stages of their own are not modelled",
    "--delay-wgrad-compute": "gradients of weights apart from those of inputs are not modelled under 1F1B",
    "--moe-expert-capacity-factor": "experts that drop tokens are not modelled",
    "--mtp-num-layers": "modules for multi-token prediction are read from a model's config.json; name the model",
    "--deepspeed": "it is of DeepSpeed, and settings of two frameworks are mixed",
    "--deepspeed_config": "it is of DeepSpeed, and settings of two frameworks are mixed",
    "--zero-stage": "it is of DeepSpeed, and settings of two frameworks are mixed",
    "--fp8-param-gather": "parameters that are gathered in 8 bits are not modelled",
    "--retro-add-retriever": "retrieval is not modelled",
    "--heterogeneous-layers-config-path": "layers that a file describes are not read; name the model",
}
"""Options that are known and not modelled."""


def _degrees(keys: Keys) -> dict[str, Any]:
    tp, pp = keys.count("--tensor-model-parallel-size") or 1, keys.count("--pipeline-model-parallel-size") or 1
    cp, ep = keys.count("--context-parallel-size") or 1, keys.count("--expert-model-parallel-size") or 1
    kinds = keys.take("--cp-comm-type", list) or ["p2p"]
    if len(set(kinds)) > 1 or kinds[0] not in CONTEXT:
        keys.fail("--cp-comm-type", f"one of {' or '.join(CONTEXT)}")
    inside = keys.count("--expert-tensor-parallel-size")
    return {
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "cp_kind": CONTEXT[kinds[0]],
        "ep": ep,
        "expert_tp": tp if inside is None and ep > 1 else inside,
        "sequence_parallel": keys.flag("--sequence-parallel") and tp > 1,
        "fp32_residual": keys.flag("--fp32-residual-connection"),
        "rank_order": "tp-cp-pp-dp" if keys.flag("--use-tp-pp-dp-mapping") else "tp-cp-dp-pp",
    }


def _exchange(keys: Keys, ep: int) -> str | None:
    """The profile, after the kernels that exchange tokens between experts."""
    kind = keys.take("--moe-token-dispatcher-type", str, choices=("allgather", "alltoall", "flex"))
    if ep > 1 and kind == "allgather":
        keys.fail("--moe-token-dispatcher-type", "alltoall or flex: tokens gathered for all experts are not modelled")
    if ep > 1 and kind is None:
        keys.note("experts: tokens are exchanged all to all (--moe-token-dispatcher-type is left out)")
    deep, backend = keys.flag("--moe-enable-deepep"), keys.take("--moe-flex-dispatcher-backend", str)
    return profile_of("megatron-deepep" if (deep or backend == "deepep") and kind == "flex" else keys.framework)


def _batch(keys: Keys) -> dict[str, Any]:
    if keys.data.get("--rampup-batch-size") is not None:
        keys.drop("--rampup-batch-size", "the batch is taken at its full size")
    return {"micro_batch": keys.count("--micro-batch-size") or 1}


def _stages(keys: Keys, pp: int, layers: int | None) -> dict[str, Any]:
    """How layers are dealt to stages."""
    vpp, each = (
        keys.count("--num-virtual-stages-per-pipeline-rank"),
        keys.count("--num-layers-per-virtual-pipeline-stage"),
    )
    first = keys.count("--decoder-first-pipeline-num-layers")
    last = keys.count("--decoder-last-pipeline-num-layers")
    embedding = keys.flag("--account-for-embedding-in-pipeline-split")
    loss = keys.flag("--account-for-loss-in-pipeline-split")
    layout = keys.take("--pipeline-model-parallel-layout", str)
    if layout is not None:
        return _layout(keys, layout, pp)
    if (each is not None or (first is None) != (last is None)) and layers is None:
        raise InputError(f"{keys.label}: layers of stages need --num-layers, found none")
    if each is not None and layers is not None:
        vpp = max((layers + embedding + loss) // (pp * each), 1)
    if (embedding or loss) and pp > 1:
        return {"vpp": vpp or 1, "account_for": next(n for n, ends in COUNTED.items() if ends == (embedding, loss))}
    if first is not None and last is None and layers is not None:
        last = (layers - first) // (pp - 1) if pp > 1 else first
    elif last is not None and first is None and layers is not None:
        first = (layers - last) // (pp - 1) if pp > 1 else last
    return {"vpp": vpp or 1, "first_stage_layers": first, "last_stage_layers": last}


def _layout(keys: Keys, layout: str, pp: int) -> dict[str, Any]:
    """A layout of stages in letters, or the field that says the same where layers differ by one or at the ends only.

    No field but the layout says of ends and modules that they are elsewhere than on the first and the last stage.
    """
    name = "--pipeline-model-parallel-layout"
    try:
        letters = stages_of(layout)
    except InputError as error:
        raise InputError(f"{keys.label}: {name}: {error}") from None
    if len(letters) % pp:
        keys.fail(name, f"letters E, t, m and L in a multiple of pp = {pp} stages")
    stages = [each.count("t") for each in letters]
    vpp, most = len(stages) // pp, max(stages)
    if 0 in stages or any("m" in each for each in letters[:-1]):
        return {"vpp": vpp, "layout": layout}
    if len(set(stages)) == 1:
        return {"vpp": vpp}
    if stages == sorted(stages, reverse=True) and most - min(stages) == 1:
        return {"vpp": vpp, "uneven_stages": True}
    if vpp == 1 and pp > 1 and len(set(stages[1:-1])) <= 1:
        return {"vpp": 1, "first_stage_layers": stages[0], "last_stage_layers": stages[-1]}
    return {"vpp": vpp, "layout": layout}


def _recomputation(keys: Keys) -> dict[str, Any]:
    modules = keys.take("--recompute-modules", list)
    kind = keys.take("--recompute-granularity", str, choices=("full", "selective"))
    method = keys.take("--recompute-method", str, choices=("uniform", "block"))
    number = keys.count("--recompute-num-layers")
    if keys.flag("--recompute-activations") and kind is None:
        kind = "selective"
    if kind == "selective" and modules not in (None, ["core_attn"]):
        return {"recompute": "selective", "recompute_modules": ",".join(map(str, modules)), "recomputed": None}
    if kind == "full" and method == "uniform" and (number or 1) > 1:
        keys.fail("--recompute-num-layers", "1 with the method uniform: chunks of several layers are not modelled")
    return {"recompute": kind or "none", "recomputed": number if kind == "full" and method == "block" else None}


def _sharding(keys: Keys) -> dict[str, Any]:
    strategy = keys.word("--data-parallel-sharding-strategy", STRATEGIES)
    if keys.flag("--use-megatron-fsdp", "--use-custom-fsdp"):
        found = strategy or 0
    else:
        found = 1 if keys.flag("--use-distributed-optimizer") else 0
    if keys.flag("--use-torch-fsdp2"):
        found = 3
    keys.flag("--use-distributed-optimizer")
    return {"zero": found}


def _transfers(keys: Keys, vpp: int, framework: str) -> dict[str, Any]:
    """Transfers between stages: hidden where those are interleaved, unless they are told not to be.

    What Megatron Bridge's recipes say of it is no option that is read; its profile chooses.
    """
    shown = keys.flag("--no-overlap-p2p-communication")
    return {"overlap_pp": float(vpp > 1 and not shown)} if framework == "megatron" else {}


def _overlap(keys: Keys, zero: int) -> dict[str, Any]:
    reduced, gathered = keys.flag("--overlap-grad-reduce"), keys.flag("--overlap-param-gather")
    return {
        "overlap_dp": float(reduced),
        "overlap_parameters": float(gathered and zero in (1, 2)),
        "overlap_gather": float(gathered) if zero == 3 else 1.0,
        "overlap_tp": 1.0,
    }


def _numbers(keys: Keys) -> dict[str, Any]:
    bf16, fp16 = keys.flag("--bf16"), keys.flag("--fp16")
    if bf16 and fp16:
        raise InputError(f"{keys.label}: found --bf16 and --fp16, expected one of them")
    precision = "bf16" if bf16 else "fp16" if fp16 else "fp32"
    if keys.take("--fp8-format", str, choices=("e4m3", "hybrid")) is not None:
        precision = "fp8"
    if keys.take("--fp4-format", str, choices=("e2m1",)) is not None:
        precision = "fp4"
    keys.drop("--fp8-recipe", "scales of every recipe cost the same here")
    drops = [keys.take(f"--{name}-dropout", float, least=0) for name in ("attention", "hidden")]
    if None in drops:
        keys.note("dropout: 0.1 where the file has no rate, which is Megatron-LM's default")
    backend = keys.word("--attention-backend", ATTENTION)
    if backend is None:
        backend = "flash"
        if not keys.flag("--use-flash-attn"):
            keys.note("attention: flash or fused kernels, which Megatron-LM's default (auto) takes")
    return {
        "precision": precision,
        "dropout": any(rate is None or rate > 0 for rate in drops),
        "attention": backend,
        "optimizer": keys.word("--optimizer", OPTIMIZERS) or "adam",
    }


def _loss(keys: Keys) -> dict[str, Any]:
    """The multiple of the vocabulary, and what follows the head: one kernel, one with the head, or several."""
    kind = keys.word("--cross-entropy-fusion-impl", {"native": "fused", "te": "fused", "linear": "fused-linear"})
    loss = kind or "fused" if keys.flag("--cross-entropy-loss-fusion") else "unfused"
    multiple = keys.count("--make-vocab-size-divisible-by")
    return {"loss": loss} | ({} if multiple is None else {"vocab_multiple": multiple})


def _state(keys: Keys) -> dict[str, Any]:
    """Bytes of gradients and of the optimizer's state where the file sets their formats; whether sorting is fused."""
    values: dict[str, Any] = {}
    names = ("--main-params-dtype", "--exp-avg-dtype", "--exp-avg-sq-dtype")
    widths = [keys.word(name, WIDTHS) for name in names]
    if keys.flag("--use-precision-aware-optimizer") and any(each not in (None, 4) for each in widths):
        values["optimizer_bytes"] = sum(4 if each is None else each for each in widths)
    gradients = keys.word("--main-grads-dtype", WIDTHS)
    if keys.flag("--grad-reduce-in-bf16") or gradients == 2:
        values["gradient_bytes"] = 2
    if keys.flag("--moe-permute-fusion"):
        values["scatter_latency"] = 0.0
    if keys.flag("--overlap-moe-expert-parallel-comm"):
        values["exchange_overlap"] = HIDDEN_EXCHANGE
    return values


def _offload(keys: Keys, fields: dict[str, Any], layers: int | None) -> dict[str, Any]:
    """What the host keeps, and the parts of it that are not all."""
    kept, parts = [], {}
    part = keys.take("--optimizer-offload-fraction", float, least=0)
    if keys.flag("--optimizer-cpu-offload"):
        kept.append("optimizer")
        if part is not None and part < 1:
            parts["offloaded_optimizer"] = part
    some = keys.take("--cpu-offloading-num-layers", int, least=0)
    if some:
        kept.append("activations")
        share = None if layers is None else -(-layers // fields["pp"])
        if share is not None and some < share:
            parts["offloaded_activations"] = some / share
    names = keys.take("--offload-modules", list) or []
    if keys.flag("--fine-grained-activation-offloading"):
        kept += [str(name) for name in names]
    fields["offload"] = ",".join(kept) or None
    return parts
