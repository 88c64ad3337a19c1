"""Structures to try laws on, and batches of points for their programs: thousands at once, in the shape of real runs."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from symperf.codegen.interpret import adjoints, arrays, run
from symperf.models.model import Model
from symperf.plans.structure import Structure
from symperf.train.compile import compile_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.operations.compiled import Compiled

Batch = dict[str, Any]
SIZE = 4096

ARCHITECTURES = {
    name: Model.load(name).architecture
    for name in (
        "gpt3-175b",
        "llama-2-7b",
        "gemma-2-9b",
        "falcon-7b",
        "bloom-176b",
        "olmo-2-7b",
        "gpt-j-6b",
        "qwen3-8b",
    )
}
"""Gated and plain, tied and untied, parallel and serial, one, two and four norms, with and without biases."""


def structure(model: str = "gpt3-175b", **choices: Any) -> Structure:
    """A structure, by default the plainest on a whole system."""
    base = Structure(ARCHITECTURES[model], "eager", "none", False, "1f1b", 0, True, False, True, True, 2)
    return dataclasses.replace(base, **choices)


STRUCTURES = {
    "gpt": structure(),
    "gpt, interleaved, selective, sharded": structure(
        recompute="selective", sequence_parallel=True, schedule="interleaved", zero=1
    ),
    "gpt, full recomputation, one tier": structure(recompute="full", tiers=1, l2=False, schedule="gpipe"),
    "llama, flash": structure("llama-2-7b", attention="flash", dropout=False, zero=1, sequence_parallel=True),
    "falcon, smooth, no network": structure("falcon-7b", quantised=False, l2=False, tiers=0, dropout=False),
    "gemma, interleaved": structure("gemma-2-9b", attention="flash", dropout=False, schedule="interleaved"),
    "bloom, smooth, one tier": structure("bloom-176b", quantised=False, l2=False, tiers=1, zero=1),
}

REGIMES: dict[str, dict[str, float]] = {
    "even": {},
    "slow compute": {"matrix_rate": 1e-3, "vector_rate": 1e-2},
    "slow memory": {"memory_bandwidth": 1e-3},
    "slow cache": {"l2_bandwidth": 1e-3},
    "slow network": {"scale_up_bandwidth": 1e-3, "scale_out_bandwidth": 1e-3},
    "slow scale-out": {"scale_out_bandwidth": 1e-4},
    "high latency": {"launch_latency": 1e4, "scale_up_latency": 1e4, "scale_out_latency": 1e4},
    "no latency": {"launch_latency": 0, "scale_up_latency": 0, "scale_out_latency": 0},
}
"""What binds: factors on the figures of the device."""

RANGES: dict[str, tuple[float, float]] = {
    "matrix_rate": (1e13, 1e16),
    "vector_rate": (1e12, 1e14),
    "memory_bandwidth": (3e11, 2e13),
    "l2_bandwidth": (2e12, 5e13),
    "l2_capacity": (4e6, 3e8),
    "launch_latency": (1e-7, 2e-5),
    "scale_up_bandwidth": (2e10, 2e12),
    "scale_up_latency": (1e-7, 2e-5),
    "scale_up_half_bytes": (1e4, 1e8),
    "scale_out_bandwidth": (1e9, 1e11),
    "scale_out_latency": (1e-6, 1e-4),
    "scale_out_half_bytes": (1e4, 1e8),
    "workspace_bytes": (1e8, 1e10),
    "statistic_bytes": (2, 8),
    "index_bytes": (2, 8),
    "activation_bytes": (0.5, 8),
    "weight_bytes": (0.5, 8),
    "gradient_bytes": (0.5, 8),
    "optimizer_bytes": (4, 16),
    "mask_bytes": (0.125, 2),
}
"""Smallest and largest value of what may be any real number, drawn evenly in logarithms."""


class Draw:
    """Random values of one batch; the same seed gives the same values whatever the structure needs of them."""

    def __init__(self, seed: int, size: int) -> None:
        self.random, self.size = np.random.default_rng(seed), size

    def powers(self, largest: int) -> Any:
        """Powers of two from 1 to 2**largest."""
        return 2.0 ** self.random.integers(0, largest + 1, self.size)

    def whole(self, low: int, high: int) -> Any:
        """Whole numbers from low to high."""
        return self.random.integers(low, high + 1, self.size).astype(float)

    def real(self, low: float, high: float) -> Any:
        """Real numbers, evenly in logarithms."""
        return np.exp(self.random.uniform(np.log(low), np.log(high), self.size))


def points(seed: int, regime: str = "even", size: int = SIZE, *, interleaved: bool = False) -> Batch:
    """Values of every symbol: models that the degrees divide, plans that a batch fills, devices of any balance."""
    draw = Draw(seed, size)
    found: Batch = {name: draw.real(*limits) for name, limits in RANGES.items()}
    for name in ("matrix", "vector", "memory", "l2", "attention", "attention_backward", "scale_up", "scale_out"):
        found[f"{name}_efficiency"] = draw.random.uniform(0.2, 1.0, size)
    found["ridge_efficiency"] = draw.random.uniform(0.5, 1.0, size)
    tp, pp, dp = draw.powers(4), draw.powers(5), draw.powers(6)
    vpp = np.where(pp > 1, draw.powers(2), 1.0) if interleaved else np.ones(size)
    groups = tp * draw.whole(1, 4)
    width = draw.whole(2, 16) * 16
    heads = groups * draw.powers(3)
    hidden = heads * width
    micro_batch = draw.powers(3)
    layers = draw.whole(1, 6)
    wide = np.ceil(layers / 2)
    found |= {
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "vpp": vpp,
        "micro_batch": micro_batch,
        "batch": micro_batch * dp * pp * draw.whole(1, 9),
        "sequence": tp * draw.whole(1, 300),
        "num_layers": pp * vpp * layers,
        "num_attention_dense_layers": pp * vpp * wide,
        "num_local_attention_dense_layers": pp * vpp * (layers - wide),
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "head_dim": width,
        "hidden_size": hidden,
        "intermediate_size": hidden * draw.whole(2, 5),
        "vocab_size": draw.whole(1000, 300_000),
        "sliding_window": draw.whole(16, 5000),
        "position_rows": np.where(draw.random.random(size) < 0.5, 0.0, draw.whole(1, 9000)),
        "compute_units": draw.whole(16, 304),
        "scale_up_size": draw.powers(6),
        "overlap_tp": np.clip(draw.random.uniform(-0.3, 1.3, size), 0, 1),
        "overlap_dp": np.clip(draw.random.uniform(-0.3, 1.3, size), 0, 1),
        "overlap_parameters": np.clip(draw.random.uniform(-0.3, 1.3, size), 0, 1),
        "overlap_pp": np.zeros(size),
        "tile_long": np.full(size, 256.0),
        "tile_wide": np.full(size, 128.0),
        "tile_narrow": np.full(size, 64.0),
        "memory_capacity": np.full(size, 80e9),
    }
    found |= {
        "fragmentation": draw.random.uniform(0, 0.3, size),
        "context_bytes": draw.real(1e7, 1e9),
        "collective_buffer_bytes": draw.real(1e7, 1e10),
        "loss_working_bytes": draw.real(0.0625, 20),
        "library_bytes": draw.real(1e7, 1e9),
    }
    for name, factor in REGIMES[regime].items():
        found[name] = found[name] * factor
    return found


class Values:
    """What a structure's program gives at a batch of points: outputs and terms by name."""

    def __init__(self, of: Structure, batch: Batch) -> None:
        self.compiled: Compiled = compile_step(of)
        self.batch = batch
        self.all = run(self.compiled.program, batch, arrays())

    def __getitem__(self, name: str) -> Any:
        program = self.compiled.program
        position = program.outputs[name] if name in program.outputs else program.lets[name]
        return np.broadcast_to(self.all[position], np.shape(self.batch["tp"]))

    def slopes(self) -> dict[int, Any]:
        """Derivatives of the step time."""
        program = self.compiled.program
        return adjoints(program, self.all, program.outputs["time"], arrays())

    def operations(self, keep: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Paths of the operations that are no idle time."""
        return [term.path for term in self.compiled.terms if not term.idle and keep(term.path)]


@cache
def directions(of: Structure) -> dict[str, int]:
    """What the fold proves of a structure's step time: the direction in each symbol."""
    from symperf.formulas.language.discipline import judge
    from symperf.formulas.language.symbols import strip_units
    from symperf.operations.schedule import closed_form
    from symperf.train.build import step_tree

    return {str(symbol): way for symbol, way in judge(strip_units(closed_form(step_tree(of)))).directions.items()}
