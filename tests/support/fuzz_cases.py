"""Odd input, made from tables by a seed: something that is right, in which one to three parts are odd."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

from support.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

TRAIN = ("train", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--sequence", "128", "--json")
INFER = ("infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--prompt", "128", "--generate", "8", "--json")
SERVE = ("serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "128", "--generate", "8", "--ttft", "1", "--tpot", "1")
COMMANDS = (
    TRAIN,
    (*TRAIN, "--tp", "2", "--pp", "2", "--dp", "2"),
    INFER,
    (*SERVE, "--json"),
    ("search", "llama-2-7b", "-s", "h100-sxm", "--devices", "2", "--batch", "8", "--sequence", "128", "--json"),
    ("inspect", "llama-2-7b", "--batch", "2", "--sequence", "8", "--json"),
    ("regimes", *TRAIN[:-1], "--over", "memory_bandwidth", "--from", "1e12", "--to", "2e12", "--json"),
    ("solve", *TRAIN[:-1], "--for", "memory_bandwidth", "--time", "1", "--json"),
    ("cross", *TRAIN[:-1], "--a", "compute", "--b", "memory", "--over", "memory_bandwidth", "--json"),
    ("limits", *TRAIN[:-1], "--over", "batch", "--json"),
    ("list", "symbols", "--json"),
    ("technology", "--json"),
    ("cache", "--json"),
    ("validate", "--data", "@", "--json"),
    ("formulas", "ring_all_reduce_time", "--tex", "@/out.tex"),
)
TEXTS = (
    *(
        "",
        " ",
        "-",
        "--",
        "=",
        "a=b",
        ",",
        ",,",
        "0",
        "-1",
        "1.5",
        "1e3",
        "1e400",
        "-inf",
        "nan",
        "inf",
        "1_000",
        "٣",
        "0x10",
    ),
    *(
        "9" * 18,
        "9" * 19,
        "9" * 310,
        "9" * 4000,
        "9" * 5000,
        "0." + "1" * 400,
        "1e-400",
        "true",
        "None",
        "none",
        "null",
    ),
    *(
        "é",
        "模型",
        "\u202eabc",
        "\x1b[2J",
        "a\nb",
        "a\tb",
        "a\0b",
        "\udcff",
        "'",
        '"',
        "`",
        "$x$",
        "${x}",
        "%s",
        "{}",
        "{0}",
    ),
    *("<script>", "=HYPERLINK(1)", "__import__('os')", "x" * 300, "x" * 5000, "x/" * 3000, "/dev/null", "/", ".", ".."),
    *(
        "@",
        "@/none",
        "@/none.toml",
        "tp",
        "tp=2",
        "tp=0",
        "tp<=2",
        "tp=" + "9" * 400,
        "8,8",
        "2x2",
        "1x2x3",
        "fp8",
        "full",
    ),
    *("llama-2-7b", "LLAMA-2-7B", "h100", "3 TB/s", "3 TB", "5 us", "-5 us", "80 %", "(((((((((", "1+1", "tp*tp*tp"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, 10**18, 10**30, 10**400, 0.5, -0.5, 1e308, 1e-308, float("nan")),
    *(
        float("inf"),
        "",
        "1",
        "bfloat16",
        "gelu",
        "x" * 3000,
        [],
        [1],
        [[]],
        [None] * 100,
        {},
        {"a": {}},
        {"rope_type": 3},
    ),
)
NAMES = ("x", "", "a.b", "num_layers", "torch_dtype", "tie_word_embeddings", "é", "x" * 3000, "num_experts", "time")


@dataclass(frozen=True)
class Case:
    """A command line, and the files that it reads; `@` is their folder."""

    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)


@cache
def known_flags() -> dict[str, tuple[str, ...]]:
    """The flags of each verb."""
    from symperf.cli.parser import build

    return {name: tuple(verb.flags()) for name, verb in build()[1].items()}


def flags(random: Random) -> Case:
    """A command line with values, flags or words that are odd."""
    parts = list(random.choice(COMMANDS))
    for _ in range(random.choice((1, 1, 2, 3))):
        kind, at = random.randrange(5), random.randrange(len(parts))
        if kind == 0:
            parts[at] = random.choice(TEXTS)
        elif kind == 1:
            del parts[at]
            parts = parts or ["train"]
        elif kind == 2:
            parts.insert(at, random.choice(TEXTS))
        else:
            names = known_flags().get(parts[0], ("--tp",))
            flag = random.choice(names)
            parts.append(flag if flag in ("--json", "--help") else f"{flag}={random.choice(TEXTS)}")
    banned = ("measure", "completion", "mcp")
    free = any(
        part.startswith(("--check", "--dask", "--site", "--pdf", "--help", "--version", "-h")) for part in parts
    )  # no input, but other programs
    long = parts[0] == "validate" and not any(part.startswith(("--data", "--source")) for part in parts)  # every row
    return Case(COMMANDS[0] if parts[0] in banned or free or long else tuple(parts))


def damage(random: Random, data: bytes) -> bytes:
    """Bytes of a file that are cut, doubled, changed or joined by others."""
    at, kind = random.randrange(len(data) + 1), random.randrange(7)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(random.randrange(256) for _ in range(random.randrange(1, 9))) + data[at:]
    if kind == 2:
        return data[:at] + data[at + random.randrange(1, 40) :]
    if kind == 3:
        return data + data
    if kind == 4:
        return random.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\n" * 1000, b"[" * 5000)) + data
    if kind == 5:
        return data[:at] + random.choice(TEXTS).encode("utf-8", "replace") + data[at:]
    return random.choice((b"", b" ", b"null", b"[]", b"{}", b"1", b"\n", b"---\n", b"a: &x [*x]\n", b"\0" * 100))


@cache
def catalogue(name: str) -> bytes:
    """The text of a file of the catalogue."""
    return (ROOT / "symperf" / "catalogue" / name).read_bytes()


def twisted(random: Random, data: Any) -> Any:
    """A copy of an object with keys or values that are odd."""
    found = json.loads(json.dumps(data))
    for _ in range(random.choice((1, 1, 2, 3))):
        kind, name = random.randrange(4), random.choice(list(found) or ["x"])
        if kind == 0:
            found.pop(name, None)
        elif kind == 1:
            found[random.choice(NAMES)] = random.choice(VALUES)
        else:
            found[name] = random.choice(VALUES)
    return found


def configs(random: Random) -> Case:
    """The configuration of a model."""
    data = catalogue(f"models/{random.choice(('llama-2-7b', 'mixtral-8x7b', 'deepseek-v3', 'gpt2'))}.json")
    odd = random.random() < 0.75
    data = json.dumps(twisted(random, json.loads(data))).encode() if odd else damage(random, data)
    return Case(("inspect", "@/config.json", "--json"), {"config.json": data})


def systems(random: Random) -> Case:
    """A system."""
    lines = [
        'base = "h100-sxm"',
        'memory_bandwidth = "3 TB/s"',
        "launch_latency = 3e-6",
        "name = 'mine'",
        'title = "x"',
    ]
    for _ in range(random.choice((1, 2))):
        name = random.choice(
            ("memory_capacity", "matrix_rate", "tiers", "runtime", "power", "aliases", "scale_up_size", *NAMES)
        )
        value = random.choice((*VALUES, *TEXTS))
        shown = "nan" if value is None else json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")
        lines.insert(random.randrange(len(lines) + 1), f"{name} = {shown}")
    data = "\n".join(lines).encode("utf-8", "replace")
    data = damage(random, data) if random.random() < 0.4 else data
    return Case((*TRAIN[:3], "@/s.toml", *TRAIN[4:]), {"s.toml": data})


STUDY = """model = "llama-2-7b"
system = "h100-sxm"
batch = 8
sequence = 128
outputs = ["time"]
where = ["fits", "tp <= 4"]
[plan]
micro_batch = 1
[set]
memory_efficiency = "80 %"
[axes]
tp = [1, 2]
budget = { from = 1, to = 8, powers_of = 2 }
[derived]
dp = "budget / tp"
"""


def studies(random: Random) -> Case:
    """A sweep."""
    lines = STUDY.splitlines()
    for _ in range(random.choice((1, 2))):
        at = random.randrange(len(lines))
        name = lines[at].partition(" =")[0]
        value = random.choice((*VALUES, *TEXTS))
        shown = "inf" if value is None else json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")
        lines[at] = random.choice(
            (f"{name} = {shown}", f"{name} = [{shown}, {shown}]", "", lines[at] + "\n" + lines[at])
        )
    data = "\n".join(lines).encode("utf-8", "replace")
    data = damage(random, data) if random.random() < 0.4 else data
    ending = random.choice((".csv", ".csv", ".csv", ".nc", ".txt"))
    return Case(("sweep", "@/s.toml", "-o", f"@/out{ending}", "--json"), {"s.toml": data})


MEASURED = """kind,dtype,m,n,k,bytes,devices,seconds
gemm,bf16,4096,4096,4096,,,0.0003
gemm,bf16,8192,8192,8192,,,0.002
gemm,bf16,8192,4096,8192,,,0.001
copy,,,,,1000000000,,0.0007
copy,,,,,2000000000,,0.0014
copy,,,,,4000000000,,0.0028
copy,,,,,8000000000,,0.0055
"""


def measured(random: Random) -> Case:
    """Measurements of a device."""
    rows = [line.split(",") for line in MEASURED.splitlines()]
    for _ in range(random.choice((1, 2, 3))):
        row = random.choice(rows)
        row[random.randrange(len(row))] = random.choice(TEXTS)
    data = "\n".join(",".join(row) for row in rows).encode("utf-8", "replace")
    data = damage(random, data) if random.random() < 0.5 else data
    return Case(("calibrate", "@/m.csv", "-s", "h100-sxm", "-o", "@/out.toml", "--json"), {"m.csv": data})


FRAMEWORK: dict[str, Any] = {
    "num_layers": 4,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "tensor_model_parallel_size": 2,
    "train_batch_size": 8,
    "zero_optimization": {"stage": 2},
    "bf16": {"enabled": True},
}


def frameworks(random: Random) -> Case:
    """The options of a training framework."""
    form = random.choice((".json", ".yaml", ".toml", ".sh", ""))
    if form == ".json":
        text = json.dumps(twisted(random, FRAMEWORK))
    elif form == ".sh":
        text = " ".join(f"--{name.replace('_', '-')} {random.choice(TEXTS)}" for name in FRAMEWORK)
    else:
        sign = " = " if form == ".toml" else ": "
        text = "\n".join(f"{name}{sign}{json.dumps(random.choice(VALUES))}" for name in FRAMEWORK)
    data = text.encode("utf-8", "replace")
    data = damage(random, data) if random.random() < 0.4 else data
    return Case((*TRAIN, "--from", f"@/f{form}"), {f"f{form}": data})


def traces(random: Random) -> Case:
    """Recorded requests."""
    rows: list[Any] = [{"arrival": float(k), "input": 64, "output": 4} for k in range(4)]
    for _ in range(random.choice((1, 2))):
        at = random.randrange(len(rows))
        rows[at] = twisted(random, rows[at]) if isinstance(rows[at], dict) else random.choice(VALUES)
    data = "\n".join(json.dumps(row) for row in rows).encode()
    data = damage(random, data) if random.random() < 0.5 else data
    return Case(("serve", *SERVE[1:4], "--trace", "@/t.jsonl", "--json"), {"t.jsonl": data})


GENERATORS: dict[str, Callable[[Random], Case]] = {
    each.__name__: each for each in (flags, configs, systems, studies, measured, frameworks, traces)
}


def generate(kind: str, number: int) -> Case:
    """The case of a kind and a number, the same in every process."""
    return GENERATORS[kind](Random(f"{kind} {number}"))


def _study(text: str, more: str = "") -> Case:
    data = (text + STUDY.partition("[plan]")[0] + "[axes]\ntp = [1, 2]\n" + more).encode()
    return Case(("sweep", "@/s.toml", "-o", "@/out.csv"), {"s.toml": data})


SEEDS = {
    "six thousand letters at a flag without a value": Case((*TRAIN, f"--json={'x/' * 3000}")),
    "a budget beyond 64 bits": _study("", "budget = [1000000000000000000, 100000000000000000000]\n"),
    "four hundred digits of a fraction": Case((*TRAIN, "--overlap-tp", "1" * 400)),
    "four hundred digits of seconds": Case((*SERVE[:-1], "1" * 400)),
    "five thousand digits of devices": Case((*COMMANDS[4][:5], "9" * 5000, *COMMANDS[4][6:])),
    "a name of three hundred letters": Case(
        ("sweep", "@/s.toml", "-o", "@/" + "n" * 300 + ".csv"), {"s.toml": STUDY.encode()}
    ),
    "a base with a null character": Case((*TRAIN[:3], "@/s.toml", *TRAIN[4:]), {"s.toml": b'base = "a\\u0000.toml"\n'}),
    "a whole number of four thousand digits": Case(
        (*TRAIN[:3], "@/s.toml", *TRAIN[4:]), {"s.toml": b'base = "h100-sxm"\nmemory_bandwidth = ' + b"9" * 4000}
    ),
    "a key of three thousand parts": _study(".".join("a" * 3000) + " = 1\n"),
    "a head of half a million parts": _study("", "[" + ".".join("a" * 400_000) + "]\n"),
    "two hundred conditions": Case(
        ("sweep", "@/s.toml", "-o", "@/out.csv"),
        {"s.toml": STUDY.replace('"tp <= 4"', ", ".join(f'"tp <= {k}"' for k in range(1, 213))).encode()},
    ),
    "fifty thousand keys": Case(
        ("inspect", "@/config.json"), {"config.json": json.dumps({f"k{k}": k for k in range(50_000)}).encode()}
    ),
    "a million columns": Case(
        ("calibrate", "@/m.csv", "-s", "h100-sxm", "-o", "@/out.toml"),
        {"m.csv": ",".join(map(str, range(10**6))).encode()},
    ),
    "two thousand million layers": Case(
        ("inspect", "@/config.json"),
        {
            "config.json": json.dumps(
                json.loads(catalogue("models/mixtral-8x7b.json")) | {"num_hidden_layers": 2**31}
            ).encode()
        },
    ),
    "a type of six thousand letters": Case(
        ("calibrate", "@/m.csv", "-s", "h100-sxm", "-o", "@/out.toml"),
        {"m.csv": MEASURED.replace("gemm,bf16,4096", f"gemm,{'x/' * 3000},4096").encode()},
    ),
    "no multi-token layers": Case((*TRAIN, "--set", "num_multi_token_layers=0")),
}
"""What once ended in a traceback, in silence or never."""
