"""Commands whose JSON answers show what keys a verb has, and a validator of the part of JSON Schema that is used."""

from __future__ import annotations

from typing import Any

TRAIN = ("train", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--sequence", "128")
INFER = ("infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--prompt", "128", "--generate", "8")
SERVE = ("serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "128", "--generate", "8")
SEARCH = ("search", "llama-2-7b", "-s", "h100-sxm", "--devices", "2", "--batch", "8")
BAND = ("--over", "memory_bandwidth", "--from", "1e12", "--to", "4e12")
STUDY = (
    'model = "llama-2-7b"\nsystem = "h100-sxm"\nbatch = 8\nsequence = 128\nwhere = ["tp <= 1"]\n[axes]\ntp = [1, 2]\n'
)
MEASURED = "kind,dtype,m,n,k,seconds\n" + "".join(
    f"gemm,bf16,{m},4096,4096,{m * 7.5e-8}\n" for m in (1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192)
)
FILES = {"s.toml": STUDY, "m.csv": MEASURED}
CASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "train": (TRAIN, (*TRAIN, "--tp", "2", "--pp", "2", "--dp", "2", "--zero", "1", "--interval")),
    "infer": (INFER, (*INFER, "--tp", "2", "--stack", "vllm-0.24")),
    "serve": ((*SERVE, "--ttft", "1", "--tpot", "0.1"), (*SERVE, "--concurrency", "8")),
    "inspect": (("inspect", "llama-2-7b"), ("inspect", "mixtral-8x7b"), ("inspect", "gpt2")),
    "list": (("list", "systems"), ("list", "symbols"), ("list", "models")),
    "cite": (("cite", *TRAIN),),
    "cache": (("cache",),),
    "completion": (("completion", "bash"),),
    "doctor": (("doctor",),),
    "mcp": (("mcp", "--verbs", "inspect,search"),),
    "sweep": (("sweep", "@/s.toml", "-o", "@/out.csv", "--overwrite"),),
    "derive": (("derive", *TRAIN),),
    "formulas": (("formulas", "ring_all_reduce_time"), ("formulas",)),
    "regimes": (("regimes", *TRAIN, *BAND),),
    "phase": (("phase", *TRAIN, "--over", "memory_bandwidth", "--and", "batch"),),
    "solve": (("solve", *TRAIN, "--for", "memory_bandwidth", "--time", "0.4"),),
    "cross": (("cross", *TRAIN, "--a", "compute", "--b", "memory", *BAND),),
    "gains": (("gains", *TRAIN),),
    "limits": (("limits", *TRAIN, "--over", "sequence"),),
    "calibrate": (("calibrate", "@/m.csv", "-s", "h100-sxm", "-o", "@/new.toml", "--fit", "matrix_efficiency"),),
    "validate": (("validate", "--source", "KORTH"), ("validate", "--explain", "SC21-003")),
    "technology": (("technology",),),
    "explore": (("explore", "llama-2-7b", "-s", "h100-sxm", "--only", "infer", "-o", "@/page.html"),),
    "allocate": (("allocate", "gpt-22b", "--tp", "8", "--batch", "8", "--sequence", "2048"),),
    "search": ((*SEARCH, "--sequence", "128"), (*SEARCH, "--prompt", "128", "--generate", "8")),
}
"""By verb; `measure` needs a device, and its keys stand in its schema by hand."""
SLOW = ("allocate", "validate", "cite", "derive", "search", "phase", "gains", "calibrate", "sweep", "serve", "explore")
"""Those that take longest, left to `nightly`."""
_KINDS: dict[str, Any] = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool}


def faults(schema: dict[str, Any], value: Any, where: str = "") -> list[str]:
    """Where a value is not what a schema says: of `type`, `properties`, `required`, `items`, `additionalProperties`."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return [f"{where}: {type(value).__name__}, expected {' or '.join(kinds)}"]
    found = []
    if isinstance(value, dict):
        found += [f"{where}.{name}: is missing" for name in schema.get("required", ()) if name not in value]
        for name, each in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            found += faults(inner, each, f"{where}.{name}")
    if isinstance(value, list):
        for each in value:
            found += faults(schema.get("items", {}), each, f"{where}[]")
    return found


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else int | float)
    return isinstance(value, _KINDS[kind])
