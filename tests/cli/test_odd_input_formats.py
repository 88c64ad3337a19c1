"""Odd input to split products, formats of experts, own all-reduces, and to what stands on them: clear answers."""

from __future__ import annotations

import json
import math
import shlex
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from support.effort import some
from support.expert_format_cases import BACK, THERE
from support.paths import ONE_LAYER
from support.validation_cases import TRAINING, folder

import symperf as sf
from symperf.codegen.interpret import arrays, floats
from symperf.codegen.interpret import run as evaluate
from symperf.codegen.lower import lower
from symperf.common.errors import InputError
from symperf.formulas.kernels import matmul
from symperf.formulas.kernels import thin_matmul as thin
from symperf.infer.stack import CATALOGUE

if TYPE_CHECKING:
    from pathlib import Path

EDGES = [1, 2, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 512]
"""Rows at and about the sides of tiles."""
MOE = shlex.split("infer mixtral-8x7b -s h100-sxm --dp 4 --ep 4 --batch 4 --prompt 100 --generate 10")
TRAIN = shlex.split("train mixtral-8x7b -s h100-sxm --tp 2 --dp 4 --ep 4 --batch 16 --sequence 64")
DENSE = ["train", ONE_LAYER, *shlex.split("-s a100-80gb-sxm --batch 8 --sequence 64")]
ALLOCATE = ["allocate", ONE_LAYER, *shlex.split("--tp 2 --batch 8 --json")]


def trained(**values: Any) -> Any:
    plan = sf.Plan(
        tp=2, dp=4, ep=values.pop("ep", 4), precision=values.pop("precision", "bf16"), sequence_parallel=True
    )
    work = {"batch": 16, "sequence": 64} | values
    return sf.training(sf.Model.load("mixtral-8x7b"), sf.System.load("h100-sxm"), plan, **work)


# --- formats of experts


@pytest.mark.parametrize("name", [THERE, BACK])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e9", "8 bit", "fp8", "1 GB/s", "True"])
@pytest.mark.parametrize("verb", [TRAIN, DENSE, MOE])
def test_an_element_of_no_size_is_refused(refused, name: str, value: str, verb: list[str]) -> None:
    assert f"set: {name}: " in refused([*verb, "--set", f"{name}={value}"])


@pytest.mark.parametrize("name", [THERE, BACK])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_formats_of_transfers_that_no_device_makes_change_nothing(name: str, precision: str) -> None:
    """One device holds all experts: no token travels, whatever the format, as in inference."""
    plain, stated = (trained(ep=1, precision=precision, **more) for more in ({}, {name: 1.0}))
    assert stated.value("time") == pytest.approx(plain.value("time"), rel=1e-14)  # sums in another order
    assert stated.value("memory") == plain.value("memory")


@pytest.mark.parametrize("number", ["0", "-1", "nan", "1e9"])
def test_a_format_in_a_stack_is_refused_with_an_example_of_its_kind(refused, tmp_path: Path, number: str) -> None:
    text = (CATALOGUE / "vllm-deepep.toml").read_text().replace("value = 1.03125", f"value = {number}")
    (tmp_path / "odd.toml").write_text(text)
    told = refused([*MOE, "--precision", "fp8", "--stack", str(tmp_path / "odd.toml")])
    assert "dispatch_element_bytes" in told
    assert "such as 2 B" in told


@pytest.mark.parametrize(
    "table",
    [
        "experts = 1",
        "[experts.fp7]",
        "[experts.fp8.dispatch]\nvalue = 1",
        '[experts.fp8.dispatch_element_bytes]\nsource = "x"',
        "[experts.fp8.dispatch_element_bytes]\nvalue = 1\nlow = 2\nhigh = 0.5",
        "[[experts]]\nfp8 = 1",
    ],
)
def test_odd_tables_of_experts_are_refused(refused, tmp_path: Path, table: str) -> None:
    text = (CATALOGUE / "vllm.toml").read_text()
    (tmp_path / "odd.toml").write_text(f"{table}\n{text}" if table.startswith("experts") else f"{text}\n{table}\n")
    assert "experts" in refused([*MOE, "--stack", str(tmp_path / "odd.toml")])


def test_the_spread_of_a_format_counts(tmp_path: Path) -> None:
    """Ends that a profile gives to a format are moved as those of its other quantities are."""
    text = (CATALOGUE / "vllm-deepep.toml").read_text()
    (tmp_path / "wide.toml").write_text(text.replace("value = 1.03125", "value = 1.03125\nlow = 1.0\nhigh = 1.25"))
    plan = sf.Plan(dp=4, ep=4, precision="fp8")
    work = {"batch": 4, "prompt": 2000, "generate": 2, "stack": tmp_path / "wide.toml"}
    found = sf.inference(sf.Model.load("mixtral-8x7b"), sf.System.load("h100-sxm"), plan, **work)
    assert THERE in {effect.name for effect in found.interval().effects}


# --- all-reduces of a software's own


@pytest.mark.parametrize(
    ("system", "tp"), [("gb200-nvl72", 16), ("gb200-nvl72", 64), ("l40s", 4), ("rtx-4090", 8), ("tpu-v5e", 16)]
)
def test_groups_that_the_kernel_does_not_serve(tmp_path: Path, system: str, tp: int) -> None:
    """vLLM's kernel is of 2, 4, 6 or 8 devices, and of more than two only where links other than PCIe join all."""
    text = (CATALOGUE / "vllm.toml").read_text()
    (tmp_path / "library.toml").write_text(text.replace("own_all_reduce = true", "own_all_reduce = false"))
    model, device = sf.Model.load("llama-2-70b"), sf.System.load(system)
    own, library = (
        sf.inference(model, device, sf.Plan(tp=tp), batch=8, prompt=20, generate=9, stack=stack).value("time")
        for stack in ("vllm", tmp_path / "library.toml")
    )
    assert own == library


@pytest.mark.parametrize("line", ['own_all_reduce = "yes"', "own_all_reduce = 1", "called = 0", "owned = true"])
def test_odd_collectives_are_refused(refused, tmp_path: Path, line: str) -> None:
    text = (CATALOGUE / "none.toml").read_text()
    head, _, rest = text.partition("[collectives]")
    (tmp_path / "odd.toml").write_text(f"{head}\n[collectives]\n{line}\n" + rest[rest.find("\n[") :] if rest else "")
    if not rest:
        (tmp_path / "odd.toml").write_text(f"{text}\n[collectives]\n{line}\n")
    assert "collectives" in refused([*MOE, "--stack", str(tmp_path / "odd.toml")])


@pytest.mark.parametrize(
    "setting",
    ["peer_latency=4.53", "peer_latency=-1", "peer_efficiency=65", "peer_latency=1 GB/s"],
)
def test_odd_peers_are_refused(refused, setting: str) -> None:
    assert setting.split("=")[0] in refused([*MOE, "--stack", "vllm", "--set", setting])


# --- products


def timed() -> Any:
    """A program of a product of training and of one of inference, and the inputs of an H100."""
    m, n, k, g, w = sympy.symbols("m n k g w", positive=True)
    traffic = matmul.matmul_bytes(m, n, k, g, 2, w, 2)
    forms = {
        "trained": matmul.tiled_matmul_time(m, n, k, g, 2, traffic),
        "served": thin.thin_matmul_time(m, n, k, g, 2, w, traffic),
    }
    bound = sf.inference(
        sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(), batch=1, prompt=9, generate=2
    ).bound
    return lower([], forms), {name: float(value) for name, (value, _) in bound.items()} | {"flop": 1.0}


@pytest.mark.parametrize("odd", [{}, {"tile_wide": 1.0}, {"tile_narrow": 1e6}, {"compute_units": 1.0}])
def test_rows_at_the_edges_of_tiles(odd: dict[str, float]) -> None:
    """Numbers and arrays agree to the last bit, and no product of more rows is faster, with odd tiles and groups."""
    program, device = timed()
    points = [
        device | odd | {"m": m, "n": n, "k": k, "g": g, "w": 1.0}
        for n, k, g in product([1.0, 127.0, 13825.0], [1.0, 4096.0], [0.25, 1.0, 54.2])
        for m in map(float, EDGES)
    ]
    columns = {name: np.array([point[name] for point in points]) for name in program.inputs}
    together = evaluate(program, columns, arrays())
    for name, position in program.outputs.items():
        alone = [evaluate(program, {n: p[n] for n in program.inputs}, floats())[position] for p in points]
        assert np.array_equal(together[position], alone), name
        for (less, fast), (more, slow) in pairwise(zip(points, alone, strict=True)):
            assert less["m"] >= more["m"] or fast <= slow * (1 + 1e-12), (less, more)


@pytest.mark.parametrize("setting", ["tile_thin=0", "tile_thin=1.5", "tile_wide=-1", "tile_wide=1e7", "tile_long=2 B"])
def test_odd_tiles_are_refused(refused, setting: str) -> None:
    assert "expected a whole number" in refused([*MOE, "--set", setting])


# --- what stands on the closed forms


@pytest.mark.parametrize(
    "more", [[], ["--of", "tokens_per_s"], ["--free", "batch"], ["--wrt", "batch", "--from", "1", "--to", "9"]]
)
def test_a_closed_form_of_an_inference_with_experts(call, more: list[str]) -> None:
    """The experts that tokens choose are a power of the number of tokens, whose exponent is a symbol."""
    done = call(["derive", *MOE, *more])
    assert done.code == 0, done.err


@pytest.mark.parametrize("more", some([["--sequence", "16", "--technology", "h100"], ["--sequence", "2048"]]))
def test_an_allocation_with_products_that_are_split(call, more: list[str]) -> None:
    """The parts of a split move with the units of the chip; the usual technology has one network alone."""
    pytest.importorskip("cvxpy")
    done = call([*ALLOCATE, *more])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert 0 < found["relaxed_time_s"] <= found["time_s"] * (1 + 1e-6)


@pytest.mark.parametrize(
    "factor",
    [0, -1, math.nan, math.inf, "2", None, [2], 1j, np.array([1, 2]), 1e308, 10**400],
    ids=["zero", "negative", "nan", "inf", "text", "none", "list", "complex", "array", "huge", "too huge"],
)
def test_an_interval_is_widened_by_a_number_only(factor: Any) -> None:
    """What is no number above 0, and what no float can hold, is refused in one line."""
    with pytest.raises(InputError, match=r"^factor: .*expected a number") as told:
        trained().interval().widened(factor)
    assert "\n" not in str(told.value)


def test_an_interval_widened_by_one_is_itself() -> None:
    found = trained().interval()
    same, wide = found.widened(1), found.widened(np.float64(2))
    assert (same.low, same.high) == pytest.approx((found.low, found.high))
    assert wide.low < found.low < found.high < wide.high


@pytest.mark.parametrize("name", ["jitter", "host_latency", "overhead_latency"])
def test_an_axis_of_zero_and_more(name: str) -> None:
    """Where an axis has zero beside other values, its point is the run that states nothing."""
    found = trained().sweep(**{name: [0.0, 1e-3], "tp": [2]})["time"].values.ravel()
    assert found[0] == pytest.approx(trained().value("time"), rel=1e-12)
    assert found[1] == pytest.approx(trained(**{name: 1e-3}).value("time"), rel=1e-12)


# --- rows of one's own that a document also has

PAPER = {
    "id": "SC21-6",
    "model": "GPT-76.1B",
    "layers": "60",
    "hidden": "10240",
    "ffn": "40960",
    "heads": "80",
    "kv_heads": "80",
    "vocab": "51200",
    "hw_key": "a100-80gb-sxm",
    "num_devices": "1024",
    "tp": "8",
    "pp": "4",
    "dp": "32",
    "global_batch_seqs": "1792",
    "seq_len_tokens": "2048",
    "recompute": "full",
    "step_time_s": "15",
}


def predicted(call, path: Path, **cells: str) -> float:
    done = call(["validate", "--data", str(folder(path, [PAPER | cells])), "--json"])
    assert done.code == 0, done
    (row,) = json.loads(done.out)["rows"]
    return float(row["predicted"])


def test_chunks_that_a_row_states_are_taken(call, tmp_path: Path) -> None:
    """A stage of one chunk is not the three chunks of the document's script."""
    one, three = (predicted(call, tmp_path, vpp=vpp) for vpp in ("1", "3"))
    assert one > three


def test_micro_batches_that_a_row_implies_are_taken(call, tmp_path: Path) -> None:
    """56 micro-batches of a replica's 56 sequences are of one sequence, whatever the script has."""
    steps, micro = (predicted(call, tmp_path, **cell) for cell in ({"grad_accum": "56"}, {"micro_batch_seqs": "1"}))
    assert steps == pytest.approx(micro)


def test_a_script_that_does_not_fit_the_batch_leaves_it_open(call, tmp_path: Path) -> None:
    """55 sequences of a replica are no micro-batches of two; the row says of none."""
    assert predicted(call, tmp_path, global_batch_seqs="1760", pp="1", num_devices="256", step_time_s="60") > 0


def test_a_row_of_ones_own_under_another_name(call, tmp_path: Path) -> None:
    done = call(["validate", "--data", str(folder(tmp_path, [TRAINING | {"id": "SC21", "family": "MINE"}])), "--json"])
    assert done.code == 0
    assert json.loads(done.out)["sources"][0]["name"] == "MINE"
