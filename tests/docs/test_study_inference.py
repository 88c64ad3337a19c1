"""The inference studies: their page and files are current, their bounds make sense, their crossovers are exact."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.effort import some
from support.paths import ROOT
from support.study_pages import module, rows

from symperf import InputError
from symperf.systems import memories
from symperf.systems.memories import Memory

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
study, page, studies, runner = (module(name) for name in ("inference", "inference_page", "study", "run"))
PRODUCTS = ("qkv", "output", "gate, up", "down")


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", name="tables")
def _tables() -> dict[str, list[dict[str, Any]]]:
    return study.study(False).tables  # type: ignore[no-any-return]


@pytest.fixture(scope="module", name="bounds")
def _bounds(tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return tables["bounds"]


def test_files_are_what_the_whole_study_gives(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Not only the coarse rows: all of them, in their order."""
    for name, found in studies.as_read(tables).items():
        kept = rows(f"inference_{name}")
        assert len(kept) == len(found)
        assert all(not studies.missing([one], [two]) for one, two in zip(found, kept, strict=True)), name


def test_the_page_of_inference_quotes_what_is_printed() -> None:
    refresh = _loaded(DOCS / "refresh.py")
    text = (DOCS / "inference.md").read_text(encoding="utf-8")
    assert refresh.refreshed(text) == text


def test_other_models_and_layouts_can_be_asked() -> None:
    """Each question takes the model and the layout: here of a mixture of experts, dealt out."""
    layout = {"tp": 1, "dp": 8, "ep": 8, "precision": "bf16"}
    operations = {"up": ("layer/experts/up",), "dispatch": ("layer/experts/dispatch",), "none": ("layer/nothing",)}
    found = study.bounds({"mixtral-8x7b": layout}, ("h100-sxm",), ("none",), operations, ((8, 200),))
    assert {(row["phase"], row["operation"]) for row in found} == {
        (phase, name) for phase in ("prefill", "decode") for name in ("up", "dispatch")
    }
    (row,) = study.scaling(("hbm3",), [("h100-sxm", layout)], "mixtral-8x7b", (8, 200))
    assert row["model"] == "mixtral-8x7b"
    assert row["alone_network"] > 0


# --- what binds each product


def test_long_prompts_in_batches_are_bound_by_compute(bounds: list[dict[str, Any]]) -> None:
    layers = ("qkv", "attention", "output", "gate, up", "down")
    found = [r for r in bounds if r["phase"] == "prefill" and r["batch"] == 16 and r["operation"] in layers]
    assert len(found) == 2 * 3 * len(study.SYSTEMS) * len(layers)
    assert {row["bound"] for row in found} == {"compute"}


def test_decoding_is_bound_by_memory_or_the_start_of_kernels(bounds: list[dict[str, Any]]) -> None:
    found = [row for row in bounds if row["phase"] == "decode" and row["operation"] != "all-reduce"]
    assert {row["bound"] for row in found} <= {"memory", "launch"}
    started = {
        (row["model"], row["operation"], row["system"], row["stack"])
        for row in found
        if row["n"] is not None and row["bound"] == "launch"
    }
    alone = {("llama-2-7b", name, "gb200-nvl72") for name in ("output", "down")}
    assert {key[:3] for key in started if key[3] == "none"} == alone
    assert {key[:3] for key in started if key[3] != "none"} == {
        *alone,
        ("llama-2-7b", "output", "h200-sxm"),
        ("llama-2-70b", "qkv", "b200-sxm"),
        ("llama-2-70b", "qkv", "gb200-nvl72"),
    }


@pytest.mark.parametrize("system", ["b200-sxm", "gb200-nvl72"])
def test_a_product_of_one_row_takes_its_bytes_or_the_loop_of_a_tile(bounds: list[dict[str, Any]], system: str) -> None:
    """T_0 + max(Q / beta', min(k tau, Q / beta' + lambda_k)); bound by the loop where that is the least and longer."""
    value = {
        name: pair[0] for name, pair in study.run_of("llama-2-7b", system, 1, (1, 200), stack="none").bound.items()
    }
    found = [row for row in bounds if (row["system"], row["stack"], row["m"]) == (system, "none", 1) and row["n"]]
    assert {row["bound"] for row in found if row["phase"] == "decode"} >= {"memory"}
    for row in found:
        read = row["bytes"] / (value["memory_bandwidth"] * value["memory_efficiency"])
        loop, split = row["k"] * value["inner_latency"], read + value["split_latency"]
        time = max(read, min(loop, split)) + value["launch_latency"]
        assert row["each_us"] == pytest.approx(1e6 * time, rel=1e-9)
        assert (row["bound"] == "launch") is (read < loop < split)


def test_a_context_that_is_not_split_is_read_by_few_units(bounds: list[dict[str, Any]]) -> None:
    """Attention over 200 keys: bound by its start, with the software by memory where units are described."""
    for row in bounds:
        if (row["phase"], row["batch"], row["operation"]) == ("decode", 1, "attention"):
            read = row["stack"] == "tensorrt-llm" and row["system"] in study.SYSTEMS[:3]
            assert row["bound"] == ("memory" if read else "launch")


def test_short_prompts_turn_to_memory_on_faster_devices_as_published(bounds: list[dict[str, Any]]) -> None:
    """Products of a prompt of 200 tokens: none is bound by memory on A100, some are on H100 and B200, none computes."""
    counts, computing = (
        {
            system: sum(
                row["bound"] == bound
                for row in bounds
                if (row["phase"], row["batch"], row["stack"], row["system"]) == ("prefill", 1, "none", system)
                and row["operation"] in PRODUCTS
            )
            for system in study.SYSTEMS
        }
        for bound in ("memory", "compute")
    )
    assert counts["a100-80gb-sxm"] == 0 < min(counts["h100-sxm"], counts["b200-sxm"])
    assert computing["a100-80gb-sxm"] > 0 == max(computing["h100-sxm"], computing["b200-sxm"])
    assert counts["h200-sxm"] <= counts["h100-sxm"]


def test_only_models_on_several_devices_use_the_network(bounds: list[dict[str, Any]]) -> None:
    for row in bounds:
        if row["operation"] == "all-reduce":
            assert row["bound"] == ("scale_up" if row["tp"] > 1 else None)
            assert (row["each_us"] > 0) is (row["tp"] > 1)


def test_gaps_of_software_only_add_time(bounds: list[dict[str, Any]]) -> None:
    """Each product that both serving softwares have takes longer with gaps before it.

    One gap; of a product of few rows that is split along k two, of which its reading hides a part where it is longer.
    """

    def times(stack: str) -> dict[tuple[Any, ...], float]:
        keys = ("model", "system", "phase", "batch", "path", "k")
        return {tuple(r[key] for key in keys): r["each_us"] for r in bounds if r["stack"] == stack and r["n"]}

    ideal, real = times("none"), times("tensorrt-llm")
    common = ideal.keys() & real.keys()
    assert len(common) == 4 * 3 * len(study.SYSTEMS) * 4
    split = {key for key in common if real[key] != pytest.approx(ideal[key] + 2.1, rel=1e-12)}
    assert {(key[2], key[5] > 2048) for key in split} == {("decode", True)}
    assert {key[1] for key in split} == set(study.SYSTEMS)
    assert all(2.1 < real[key] - ideal[key] <= 4.2 * (1 + 1e-9) for key in split)
    assert any(real[key] == pytest.approx(ideal[key] + 4.2, rel=1e-12) for key in split)


def test_work_and_bytes_of_a_product_are_those_of_its_shape(bounds: list[dict[str, Any]]) -> None:
    """2 m n k FLOP; in 16 bits 2 (m k + k n + m n) bytes, of fused gate and up half of the result."""
    found = [row for row in bounds if row["n"] is not None and row["operation"] in ("qkv", "output", "down")]
    assert found
    for row in found:
        m, n, k = row["m"], row["n"], row["k"]
        assert row["flops"] == 2 * m * n * k
        assert row["bytes"] == 2 * (m * k + k * n + m * n)


def test_the_ridge_is_where_a_roofline_bends(tables: dict[str, list[dict[str, Any]]]) -> None:
    for row in tables["ridges"]:
        assert row["ridge"] == pytest.approx(row["attained_TFLOP_s"] / row["attained_TB_s"])
        assert row["attained_TFLOP_s"] < row["peak_TFLOP_s"]
        limit = next(line for line in tables["limits"] if line["system"] == row["system"])
        assert row["ridge"] == pytest.approx(limit["b_1"]), "one weight of 2 bytes is worth 2 FLOP a sequence"


def test_no_product_exceeds_its_roofline(tables: dict[str, list[dict[str, Any]]]) -> None:
    ridge = {row["system"]: row for row in tables["ridges"]}
    for row in tables["bounds"]:
        if row["operation"] in PRODUCTS:
            system = ridge[row["system"]]
            roof = min(system["attained_TFLOP_s"], system["attained_TB_s"] * row["flops_per_byte"])
            assert row["flops"] / row["each_us"] / 1e6 <= roof * (1 + 1e-12)


# --- memory technologies


def test_technologies_have_the_published_bandwidths() -> None:
    """JEDEC and vendors print these for a stack or a chip, in GB/s."""
    published = {"gddr6": 64, "hbm2": 307, "hbm2e": 410, "hbm3": 819, "hbm3e": 1178, "hbm4": 2048, "hbm6": 8192}
    for name, bandwidth in published.items():
        assert round(Memory.load(name).stack_bandwidth / 1e9) == bandwidth
    devices = [Memory.load(name).device_bandwidth for name in memories.names()]
    assert devices == sorted(devices)


def test_every_number_has_a_source_and_projections_are_called_so() -> None:
    for name in memories.names():
        memory = Memory.load(name)
        for quantity in (memory.pins, memory.pin_rate, memory.count):
            assert "set by the user" not in quantity.source
        assert ("projection" in memory.title) is (memory.kind == "projection")
        if memory.kind == "projection":
            assert "projection" in memory.pin_rate.source


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[x]\ntitle = "x"', "expected a table of"),
        ("x = 3", "expected a table of"),
        ('[x]\ntitle = "x"\nkind = "standart"\npins = 1\npin_rate = 1e9\ncount = 1', "did you mean standard"),
        ('[x]\ntitle = "x"\nkind = "vendor"\npins = 1.5\npin_rate = 1e9\ncount = 1', "pins: found 1.5"),
        ('[x]\ntitle = "x"\nkind = "vendor"\npins = 1\npin_rate = "8 GHz"\ncount = 1', "pin_rate"),
        ('[x]\ntitle = ""\nkind = "vendor"\npins = 1\npin_rate = 1e9\ncount = 1', "title"),
        ("[x", "not valid TOML"),
    ],
)
def test_bad_technologies_are_refused_in_one_line(
    text: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memories.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(memories, "CATALOGUE", path)
    with pytest.raises(InputError) as caught:
        Memory.load("x")
    assert "\n" not in str(caught.value)
    assert line in str(caught.value)


@pytest.mark.parametrize("name", ["hbm5x", "HBM3", "", "../systems/h100-sxm"])
def test_an_unknown_technology_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"memory: found .*, expected gddr6 or"):
        Memory.load(name)


# --- latency as memory gets faster


@pytest.mark.parametrize("case", study.SCALED, ids=str)
def test_faster_memory_never_slows_and_saturates(case: tuple[str, int]) -> None:
    found = study.scaling(cases=[case])
    for key in ("alone_token_ms", "alone_prefill_ms", "tensorrt-llm_token_ms"):
        times = [row[key] for row in found]
        assert times == sorted(times, reverse=True)
    for label in ("alone", "tensorrt-llm"):
        shares = [row[f"{label}_memory"] for row in found]
        assert shares == sorted(shares, reverse=True)
        assert found[-1][f"{label}_bound"] != "memory"
    for row in found:
        parts = ("memory", "compute", "l2", "launch", "network")
        assert sum(row[f"alone_{part}"] for part in parts) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("case", "setting"), some(itertools.product(study.SCALED, ("alone", "tensorrt-llm")), 0.4))
def test_crossovers_are_those_of_a_dense_scan(case: tuple[str, int], setting: str) -> None:
    """On both sides of each, 1e-9 away, the largest shares are those named; a dense scan finds no other change."""
    how = study.ALONE if setting == "alone" else {"stack": setting}
    run = study.run_of(study.SCALED_MODEL, *case, study.WORK[0], **how)

    def bound(bandwidth: float) -> str:
        shares = run.bind(memory_bandwidth=bandwidth).shares()
        return max(shares, key=shares.__getitem__)

    exact = [row for row in study.crossovers([case]) if row["setting"] == setting]
    assert exact
    assert exact[0]["before"] == "memory"
    for row in exact:
        at = 1e9 * row["bandwidth_GB_s"]
        assert (bound(at * (1 - 1e-9)), bound(at * (1 + 1e-9))) == (row["before"], row["after"])
    for one, two in itertools.pairwise(exact):
        assert one["bandwidth_GB_s"] < two["bandwidth_GB_s"]
        assert one["after"] == two["before"]
    for bandwidth in np.geomspace(*study.RANGE, 400):
        passed = [row["after"] for row in exact if 1e9 * row["bandwidth_GB_s"] < bandwidth]
        assert bound(float(bandwidth)) == [exact[0]["before"], *passed][-1]


@pytest.mark.parametrize(
    ("path", "met"),
    [
        ("decode/layer/mlp/gate_up", ["memory", "l2"]),
        ("prefill/layer/attention/output", ["memory", "compute", "memory", "compute"]),
    ],
)
def test_the_crossovers_of_a_product_are_those_of_a_bisection(path: str, met: list[str]) -> None:
    """A whole tile is computed while memory would wait, then a split one takes over, which memory binds again."""
    run = study.run_of(study.SCALED_MODEL, "h100-sxm", 1, study.WORK[0], **study.ALONE)
    found = run.regimes("memory_bandwidth", *study.RANGE, of=path).bounds()
    assert [bound for *_, bound in found] == met

    def bound(bandwidth: float) -> str | None:
        table = run.bind(memory_bandwidth=bandwidth).table()
        return next(row.bound for row in table if row.name == path)

    for (start, at, before), (_, end, after) in itertools.pairwise(found):
        low, high = (start + at) / 2, (at + end) / 2
        assert (bound(low), bound(high)) == (before, after)
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if bound(middle) == before else (low, middle)
        assert at == pytest.approx(low, rel=1e-9)


@pytest.mark.parametrize(("system", "shorter"), [("a100-80gb-sxm", 0.23), ("h100-sxm", 0.32)])
def test_what_takes_over_on_eight_devices(tables: dict[str, list[dict[str, Any]]], system: str, shorter: float) -> None:
    """All-reduces above today's bandwidth; with the software starts of kernels, below it, and never a network."""
    today = next(1e3 * row["bandwidth_TB_s"] for row in tables["ridges"] if row["system"] == system)
    found = [row for row in tables["crossovers"] if (row["system"], row["tp"]) == (system, 8)]
    alone = [row for row in found if row["setting"] == "alone"]
    assert (alone[0]["after"], alone[-1]["after"]) == ("scale_up", "scale_up")
    assert all(today < row["bandwidth_GB_s"] for row in alone)
    (served,) = (row for row in found if row["setting"] == "tensorrt-llm")
    assert served["after"] == "launch"
    assert served["bandwidth_GB_s"] < today
    scaled = {row["memory"]: row for row in tables["scaling"] if (row["system"], row["tp"]) == (system, 8)}
    one, two = (scaled[name]["tensorrt-llm_token_ms"] for name in ("hbm2e", "hbm7"))
    assert 1 - two / one == pytest.approx(shorter, abs=0.01)


def test_a_degree_solves_its_equation() -> None:
    for weights, start, rank in itertools.product((0.5, 24.0, 160.0), (0.0, 3.0), (1e-3, 2.0)):
        degree = study.degree(weights, start, rank)
        assert degree * (start + rank * degree) == pytest.approx(weights, rel=1e-12)


def test_a_small_all_reduce_takes_what_one_of_no_bytes_does(bounds: list[dict[str, Any]]) -> None:
    """One row of 8192 activations: T_0 + c / 8 + 2 (q - 1) h, and little for its bytes."""
    for row in bounds:
        if (row["stack"], row["phase"], row["batch"], row["operation"], row["tp"]) == (
            "none",
            "decode",
            1,
            "all-reduce",
            4,
        ):
            run = study.run_of(row["model"], row["system"], 4, (1, 200), stack="none")
            start, hop, piece = (run.bound[f"domain_{name}latency"][0] for name in ("", "hop_", "piece_"))
            empty = study.evaluated(study.empty_all_reduce(4), run)
            assert empty == pytest.approx(start + piece / 8 + 6 * hop, rel=1e-12)
            assert 0 < 1e-6 * row["each_us"] - empty < 0.05 * empty


def test_the_last_column_is_where_two_all_reduces_take_as_long_as_the_weights(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    for row in tables["limits"]:
        run = study.run_of(row["model"], row["system"], 1, (1, 200), stack="none")
        start, hop, piece = (run.bound[f"domain_{name}latency"][0] for name in ("", "hop_", "piece_"))
        bandwidth = run.bound["memory_bandwidth"][0] * run.bound["memory_efficiency"][0]
        reduces = 2 * start + piece / 4 + 4 * hop * (row["t_limit"] - 1)
        layer, _ = study.product_parameters(run)
        assert row["t_limit"] * reduces == pytest.approx(2 * layer / bandwidth, rel=1e-9)


# --- the figure


def test_the_numbers_need_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert study.limits({"llama-2-7b": 1}, ("h100-sxm",))
    with pytest.raises(ImportError):
        runner.picture(lambda _: None)


def test_figures_show_every_technology_and_device(tables: dict[str, list[dict[str, Any]]]) -> None:
    pytest.importorskip("matplotlib")
    ridges = runner.picture(lambda figure: page.draw_bounds(figure, tables["bounds"], tables["ridges"]))
    assert all(f"<!-- {row['system']}, ridge {row['ridge']:.0f} -->" in ridges for row in tables["ridges"])
    text = runner.picture(lambda figure: page.draw_scaling(figure, tables["scaling"], study.curves()))
    for label in (*memories.names(), *(f"{system}, TP {tp}" for system, tp in study.SCALED)):
        assert f"<!-- {label} -->" in text
    assert (DOCS / "studies" / "inference_scaling.svg").stat().st_size > 10_000
