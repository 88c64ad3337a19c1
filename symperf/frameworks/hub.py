"""What files for the trainer of transformers have in common: models by their id on the hub, optimizers, DeepSpeed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, quote
from ..common.files import decode, read_file
from ..models.catalogue import CATALOGUE
from .deepspeed import read as read_deepspeed
from .parsed import parse_json

if TYPE_CHECKING:
    from .keys import Keys
    from .settings import FrameworkSettings

OPTIMIZERS: Final = {
    **dict.fromkeys(("adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused", "adamw_anyprecision"), "adam"),
    **dict.fromkeys(("paged_adamw_32bit", "paged_adamw", "adamw_torch_xla", "adamw_torch_npu_fused", "adamw"), "adam"),
    **dict.fromkeys(("adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit", "adamw_torch_8bit"), "adam-8bit"),
    "adafactor": "adafactor",
    "sgd": "sgd-momentum",
    "muon": "muon",
}
"""Optimizers by the names of transformers' `OptimizerNames`."""
ENDINGS: Final = ("-instruct", "-chat", "-base", "-it", "-hf", "-bf16", "-fp16", "-pt", "-bnb-4bit", "-unsloth")
LARGEST: Final = 1_000_000


def model_of(name: str, folder: Path) -> str:
    """The catalogue's name for a model on the hub, where it has the same architecture; else the path as it is."""
    if CATALOGUE.find(name) is None and not (folder / name).exists():
        last = name.rpartition("/")[2].lower()
        while (end := next((each for each in ENDINGS if last.endswith(each)), None)) is not None:
            last = last.removesuffix(end)
        for each in (last, last.removeprefix("meta-")):
            if (found := CATALOGUE.find(each)) is not None:
                return found
    elif CATALOGUE.find(name) is None:
        return str(folder / name)
    return name


def sharded(keys: Keys, key: str, folder: Path) -> FrameworkSettings | None:
    """What the file of DeepSpeed says that a key names."""
    path = keys.take(key, str)
    if path is None:
        return None
    file = Path(path) if Path(path).is_absolute() else folder / path
    if not file.is_file():
        raise InputError(
            f"{keys.label}: {key}: no such file {quote(str(path))} beside it; --ignore-key {key} --zero STAGE says "
            "what it would"
        )
    label = str(path)
    text = decode(read_file(file, label, "a JSON file", LARGEST), label, "a JSON file")
    return read_deepspeed(parse_json(text, label), label, ())


def batch_of(keys: Keys, fields: dict[str, Any], micro_batch: int | None, inner: FrameworkSettings | None) -> None:
    """The micro-batch, and the fields that DeepSpeed's file decides."""
    fields["micro_batch"] = micro_batch or 1
    if inner is None:
        return
    names = (
        "zero",
        "overlap_dp",
        "overlap_gather",
        "overlap_parameters",
        "zero_shards",
        "offload",
        "nvme",
    )
    fields |= {name: inner.fields[name] for name in names if name in inner.fields}
    tp, other_tp = fields.get("tp", 1), inner.fields["tp"]
    if other_tp > 1:
        fields |= {name: inner.fields[name] for name in ("tp", "overlap_tp")}
    for name, told, other in (
        ("micro_batch", micro_batch, inner.fields.get("micro_batch")),
        ("tp", tp if tp > 1 else None, other_tp if other_tp > 1 else None),
    ):
        if other is not None and told is not None and other != told:
            raise InputError(f"{keys.label}: {name} is {told}, and {other} in {inner.label}, expected one")
    keys.read |= {f"{inner.label}: {key}": value for key, value in inner.read.items()}
    keys.ignored |= {f"{inner.label}: {key}": why for key, why in inner.ignored.items()}


def fully_sharded(keys: Keys, options: list[Any] | None, prefix: str) -> dict[str, Any]:
    """What a section for FSDP says, its keys with or without `fsdp_` before them."""

    def name(short: str) -> tuple[str, str]:
        return f"{prefix}.fsdp_{short}", f"{prefix}.{short}"

    words = [str(each) for each in options or []]
    known = ("full_shard", "shard_grad_op", "hybrid_shard", "hybrid_shard_zero2", "no_shard", "offload", "auto_wrap")
    for word in words:
        if word not in known:
            keys.fail("fsdp", f"some of {', '.join(known)}")
    strategy = keys.take(name("sharding_strategy")[0], str, name("sharding_strategy")[1])
    reshard = keys.take(name("reshard_after_forward")[0], bool, name("reshard_after_forward")[1])
    told = (strategy or next((word for word in words if "shard" in word), "")).lower()
    if "hybrid" in told:
        raise InputError(
            f"{keys.label}: fsdp: found {told}, whose groups are not told; --zero 3 --zero-shards N says it"
        )
    found: dict[str, Any] = {
        "zero": 0 if told == "no_shard" else 2 if told == "shard_grad_op" or reshard is False else 3
    }
    found |= {"overlap_dp": 1.0, "overlap_gather": 1.0, "overlap_parameters": 1.0}
    kept = keys.take(name("offload_params")[0], bool, name("offload_params")[1])
    if kept or "offload" in words:
        found["offload"] = "optimizer,weights"
    if keys.take(name("activation_checkpointing")[0], bool, name("activation_checkpointing")[1]):
        found["recompute"] = "full"
    return found


FSDP: Final = " ".join(
    f"fsdp_config.fsdp_{name} fsdp_config.{name}"
    for name in (
        *("limit_all_gathers", "sync_module_states", "use_orig_params", "cpu_ram_efficient_loading", "version"),
        *(
            "auto_wrap_policy",
            "transformer_layer_cls_to_wrap",
            "state_dict_type",
            "backward_prefetch",
            "forward_prefetch",
        ),
        *("final_state_dict_type", "min_num_params", "cpu_offload_pin_memory", "mixed_precision_policy"),
    )
)
"""Keys of a section for FSDP that cost nothing, or that every run has."""
