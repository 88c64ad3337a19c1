from __future__ import annotations

import copy
import dataclasses
import pickle
import tomllib
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT

from symperf.common.errors import InputError
from symperf.systems import system_symbols
from symperf.systems.system import CATALOGUE, System, catalogue_names

if TYPE_CHECKING:
    from pathlib import Path

SHORT = """name = "mine"
matrix_rate = { bf16 = "500 TFLOP/s" }
memory_bandwidth = "3 TB/s"
memory_capacity = "96 GB"
"""
WANTED = (
    "v100-32gb-sxm a100-40gb-sxm a100-80gb-sxm a100-80gb-pcie h100-sxm h100-pcie h100-nvl h200-sxm b200-sxm "
    "gb200-nvl72 h800-sxm mi250x mi300x mi325x mi355x tpu-v4 tpu-v5e tpu-v5p tpu-v6e l40s rtx-4090 gaudi2 gaudi3 "
    "b300-sxm gb300-nvl72 rtx-pro-6000 rtx-5090 dgx-spark gh200 h20 a800-sxm l4 t4 a30 a10 arc-pro-b60 mi350x tpu7x "
    "trainium3 "
    "l40s-shared-root"
)


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_catalogue_is_complete() -> None:
    assert set(WANTED.split()) <= set(catalogue_names())


@pytest.mark.parametrize("name", catalogue_names())
def test_every_catalogue_value_has_a_source_and_a_plausible_spread(name: str) -> None:
    system = System.load(name)
    assert system.name == name
    assert system.title
    for key, quantity in {**system.quantities, **system.matrix_rates}.items():
        assert quantity.source, key
        assert "set by the user" not in quantity.source, key
        assert "PLACEHOLDER" not in quantity.source, key
        assert quantity.low is None or quantity.low <= quantity.value, key
        assert quantity.high is None or quantity.value <= quantity.high, key
    assert "l2" not in system.levels or system.value("l2_bandwidth") > system.value("memory_bandwidth")
    assert max(r.value for r in system.matrix_rates.values()) >= system.value("vector_rate")


@pytest.mark.parametrize("name", catalogue_names())
def test_calibrated_values_name_files_that_exist(name: str) -> None:
    folder = ROOT
    for quantity in System.load(name).quantities.values():
        for word in quantity.source.replace(",", " ").replace(";", " ").split():
            if word.startswith("benchmarks/"):
                assert (folder / word).is_file(), quantity.source


def test_aliases_are_unique_and_case_does_not_matter() -> None:
    assert System.load("a100-80GB-sxm4").name == "a100-80gb-sxm"
    assert System.load("H100-SXM").name == "h100-sxm"
    assert System.load("TPU v5p").name == "tpu-v5p"
    lines = [
        line
        for n in catalogue_names()
        for line in (CATALOGUE / f"{n}.toml").read_text().splitlines()
        if "aliases" in line
    ]
    aliases = [a for line in lines for a in line.partition("[")[2].strip("]").lower().split(", ") if a]
    assert len(aliases) == len(set(aliases))


@pytest.mark.parametrize(
    ("name", "symbol", "value"),
    [
        ("a100-80gb-sxm", "memory_bandwidth", 2039e9),
        ("a100-80gb-sxm", "memory_capacity", 79.15 * 2**30),
        ("a100-80gb-sxm", "compute_units", 108),
        ("a100-80gb-sxm", "scale_out_bandwidth", 25e9),
        ("a100-40gb-sxm", "memory_bandwidth", 1555e9),
        ("h100-sxm", "scale_up_bandwidth", 450e9),
        ("h100-sxm", "scale_out_bandwidth", 50e9),
        ("h200-sxm", "memory_bandwidth", 4.8e12),
        ("b200-sxm", "scale_up_bandwidth", 900e9),
        ("gb200-nvl72", "scale_up_size", 72),
        ("mi250x", "memory_capacity", 63.98 * 2**30),
        ("mi300x", "memory_bandwidth", 5.3e12),
        ("v100-32gb-sxm", "l2_capacity", 6 * 2**20),
        ("tpu-v5e", "memory_bandwidth", 819e9),
    ],
)
def test_data_sheet_values(name: str, symbol: str, value: float) -> None:
    assert System.load(name).value(symbol) == value


@pytest.mark.parametrize(
    ("name", "precision", "rate"),
    [
        ("a100-80gb-sxm", "bf16", 312e12),
        ("h100-sxm", "fp8", 1979e12),
        ("v100-32gb-sxm", "fp16", 125e12),
        ("b200-sxm", "fp4", 9e15),
        ("mi250x", "bf16", 191.5e12),
        ("tpu-v5p", "bf16", 459e12),
    ],
)
def test_data_sheet_rates(name: str, precision: str, rate: float) -> None:
    assert System.load(name).matrix_rate(precision).value == rate


MARKETED = {  # GB on the box: what software sees is that many GiB, less what a driver keeps and error correction takes
    "a100-40gb-sxm": 40, "a100-80gb-sxm": 80, "a100-80gb-pcie": 80, "h100-sxm": 80, "h100-pcie": 80, "h800-sxm": 80,
    "v100-32gb-sxm": 32, "rtx-3090": 24, "rtx-4090": 24, "rtx-5090": 32, "a30": 24, "a6000": 48, "mi300x": 192,
    "mi325x": 256, "mi350x": 288, "mi355x": 288, "mi250x": 64, "h100-nvl": 94, "gh200": 96, "h20": 96,
}  # fmt: skip


@pytest.mark.parametrize("name", MARKETED)
def test_capacity_is_what_software_sees(name: str) -> None:
    """Gibibytes less at most 2.5 %: more than the decimal gigabytes, of which none is lost."""
    quantity = System.load(name).quantities["memory_capacity"]
    assert 0.975 * MARKETED[name] * 2**30 < quantity.value < MARKETED[name] * 2**30
    assert quantity.value > MARKETED[name] * 1e9


@pytest.mark.parametrize("name", catalogue_names())
def test_a_capacity_has_a_report_of_software_or_the_rule(name: str) -> None:
    source = System.load(name).quantities["memory_capacity"].source
    assert any(word in source for word in ("PyTorch", "deviceQuery", "cudaMemGetInfo", "XLA", "Vulkan", "derived"))


def test_structure() -> None:
    a100, tpu = System.load("a100-80gb-sxm"), System.load("tpu-v4")
    assert (a100.levels, a100.quantised, a100.tiers) == (("memory", "l2"), True, ("scale_up", "scale_out"))
    assert (tpu.levels, tpu.quantised, tpu.tiers) == (("memory",), False, ("scale_up",))
    assert any("compute_units" in w for w in tpu.warnings)


def test_no_precision_stands_in_for_another() -> None:
    with pytest.raises(InputError, match=r"no matrix_rate for precision 'bf16'; it has fp32, fp16"):
        System.load("v100-32gb-sxm").matrix_rate("bf16")
    with pytest.raises(InputError, match=r"did you mean .*bf16"):
        System.load("a100-80gb-sxm").matrix_rate("bfp16")


def test_value_of_unknown_and_missing_symbols() -> None:
    system = System.load("a100-80gb-sxm")
    with pytest.raises(InputError, match="did you mean memory_bandwidth"):
        system.value("memory_bandwith")
    with pytest.raises(InputError, match="price is not given"):
        system.value("price")
    with pytest.raises(InputError, match="depends on the precision"):
        system.value("matrix_rate")


def test_immutable_and_its_own_copy() -> None:
    system = System.load("h100-sxm")
    assert copy.deepcopy(system) == system == pickle.loads(pickle.dumps(system))
    assert hash(system) == hash(System.load("h100-sxm"))
    assert "h100-sxm" in repr(system)
    with pytest.raises(dataclasses.FrozenInstanceError):
        system.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        system.quantities["power"] = system.quantities["power"]  # type: ignore[index]


def test_from_nothing(tmp_path: Path) -> None:
    system = System.load(write(tmp_path, SHORT))
    assert system.name == system.title == "mine"
    assert (system.levels, system.quantised, system.tiers) == (("memory",), False, ())
    assert system.value("vector_rate") == 500e12 / 16
    assert system.quantities["vector_rate"].source == "derived: matrix_rate.bf16 / 16"
    assert system.quantities["memory_efficiency"].source.startswith("assumed: median of 18 parts")
    assert system.quantities["memory_bandwidth"].source == f"set by the user: {tmp_path / 'mine.toml'}:memory_bandwidth"
    assert "scale_up_efficiency" not in system.quantities
    assumed = {k for k, q in system.quantities.items() if q.source.startswith("assumed")}
    assert all(any(w.startswith(k) for w in system.warnings) for k in assumed)


def test_base_changes_one_value_and_keeps_sources(tmp_path: Path) -> None:
    path = write(tmp_path, 'base = "h100-sxm"\nmemory_bandwidth = "4.8 TB/s"\n')
    system, base = System.load(str(path)), System.load("h100-sxm")
    assert system.name == "mine"
    assert system.value("memory_bandwidth") == 4.8e12
    assert dict(system.matrix_rates) == dict(base.matrix_rates)
    changed = {k for k in base.quantities if system.quantities[k] != base.quantities[k]}
    assert changed == {"memory_bandwidth"}
    again = write(tmp_path, 'base = "mine.toml"\nmatrix_rate.fp8 = 2e15\n', "again.toml")
    assert System.load(again).value("memory_bandwidth") == 4.8e12
    assert System.load(again).matrix_rate("fp8").value == 2e15


def test_tables_percent_and_zero_latency(tmp_path: Path) -> None:
    text = SHORT + (
        'memory_efficiency = "80 %"\nlaunch_latency = 0\ncompute_units = 108\n'
        'power = { value = "400 W", source = "the label", low = 300, high = "0.5 kW" }\n'
    )
    system = System.load(write(tmp_path, text))
    assert system.value("memory_efficiency") == 0.8
    assert system.value("launch_latency") == 0
    assert system.quantised
    assert system.quantities["power"] == system_symbols.Quantity(400.0, "the label", 300.0, 500.0)


def test_windows_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SHORT.replace("\n", "\r\n").encode())
    assert System.load(path).name == "mine"


BAD = {
    "not TOML": ("memory_bandwidth 5", "not valid TOML", "line 1"),
    "duplicate key": (SHORT + 'memory_capacity = "80 GB"', "not valid TOML", "Cannot overwrite"),
    "size for a bandwidth": (SHORT.replace("3 TB/s", "80 GB"), "memory_bandwidth", "one of a size"),
    "bare gigabytes": (SHORT.replace('"3 TB/s"', "2039"), "memory_bandwidth", "is the unit missing?"),
    "absurd": (SHORT.replace('"3 TB/s"', "1e17"), "memory_bandwidth", "between 1 GB/s and 10 PB/s"),
    "small capacity": (SHORT.replace('"96 GB"', "80"), "memory_capacity", "a bare number is in B"),
    "negative": (SHORT.replace("3 TB/s", "-3 TB/s"), "memory_bandwidth", "above zero"),
    "zero": (SHORT.replace('"3 TB/s"', "0"), "memory_bandwidth", "above zero"),
    "nan": (SHORT.replace('"3 TB/s"', "nan"), "memory_bandwidth", "finite"),
    "inf": (SHORT.replace('"3 TB/s"', "inf"), "memory_bandwidth", "finite"),
    "huge integer": (SHORT.replace('"3 TB/s"', "9" * 400), "memory_bandwidth", "finite"),
    "very huge integer": (SHORT.replace('"3 TB/s"', "9" * 5000), "not valid TOML", "digit"),
    "boolean": (SHORT.replace('"3 TB/s"', "true"), "memory_bandwidth", "of type bool"),
    "list": (SHORT.replace('"3 TB/s"', "[3]"), "memory_bandwidth", "of type list"),
    "date": (SHORT.replace('"3 TB/s"', "2024-01-01"), "memory_bandwidth", "of type date"),
    "negative latency": (SHORT + 'launch_latency = "-1 us"', "launch_latency", "not negative"),
    "latency in microseconds": (SHORT + "launch_latency = 5", "launch_latency", "is the unit missing?"),
    "efficiency above one": (SHORT + "memory_efficiency = 80", "memory_efficiency", "write 80 % as 0.8"),
    "efficiency zero": (SHORT + "memory_efficiency = 0", "memory_efficiency", "above zero"),
    "unknown key": (SHORT + "memory_bandwith = 1", "unknown key 'memory_bandwith'", "did you mean memory_bandwidth"),
    "unknown precision": (SHORT.replace("bf16", "fp15"), "unknown precision 'fp15'", "did you mean"),
    "rate without a table": (SHORT.replace("{ bf16 =", "").replace('s" }', 's"'), "matrix_rate", "table by precision"),
    "bad rate": (SHORT.replace("500 TFLOP/s", "500"), "matrix_rate.bf16", "no unit"),
    "unknown base": ('base = "h100-sxn"', "no system 'h100-sxn'", "did you mean h100-sxm"),
    "missing base file": ('base = "other.toml"', "other.toml", "no such file"),
    "own base": ('base = "mine.toml"', "cycle", "mine.toml -> mine.toml"),
    "fractional units": (SHORT + "compute_units = 108.5", "compute_units", "whole number"),
    "no name": (SHORT.replace('name = "mine"', ""), "no name", "expected"),
    "empty name": (SHORT.replace('"mine"', '""'), "name", "not empty"),
    "name of a wrong type": (SHORT.replace('"mine"', "3"), "name", "expected a text"),
    "no bandwidth": (SHORT.replace("memory_bandwidth", "#"), "missing memory_bandwidth", "needs"),
    "nothing but a name": ('name = "x"', "missing matrix_rate, memory_bandwidth, memory_capacity", "needs"),
    "tier without size": (SHORT + 'scale_up_bandwidth = "300 GB/s"', "scale_up_bandwidth", "without scale_up_size"),
    "size without tier": (SHORT + "scale_up_size = 8", "scale_up_size", "without scale_up_bandwidth"),
    "latency without tier": (SHORT + 'scale_up_latency = "3 us"', "scale_up_latency", "without scale_up_bandwidth"),
    "links of another kind": (
        SHORT + 'scale_up_links = "mash"',
        "scale_up_links",
        "one of switch, mesh",
        "did you mean mesh",
    ),
    "links of a wrong type": (SHORT + "scale_up_links = [1]", "scale_up_links", "one of switch, mesh"),
    "links without tier": (SHORT + 'scale_up_links = "mesh"', "scale_up_links", "without scale_up_bandwidth"),
    "outer tier alone": (
        SHORT + 'scale_out_bandwidth = "25 GB/s"',
        "scale_out_bandwidth",
        "without scale_up_bandwidth",
    ),
    "share without level": (SHORT + "l2_efficiency = 0.5", "l2_efficiency", "without l2_bandwidth"),
    "table without value": (SHORT + 'power = { source = "x" }', "power", "no value"),
    "table with a slip": (SHORT + "power = { vale = 400 }", "power", "did you mean value"),
    "low above value": (SHORT + "power = { value = 400, low = 500 }", "power", "low <= value <= high"),
    "bad low": (SHORT + 'power = { value = 400, low = "x" }', "power.low", "plain number"),
    "source of a wrong type": (SHORT + "power = { value = 400, source = 3 }", "power: source", "expected a text"),
    "bad aliases": (SHORT + "aliases = 3", "aliases", "list of names"),
    "deep nesting": ("a = " + "[" * 20000, "not valid TOML", "recursion"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_one_clear_line(tmp_path: Path, case: str) -> None:
    text, *says = BAD[case]
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        System.load(path)
    line = str(caught.value)
    assert "mine.toml" in line
    assert all(part in line for part in says), line
    assert "\n" not in line


def test_bad_paths(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes('title = "é"'.encode("latin-1"))
    huge = write(tmp_path, "#" * 1_000_001, "huge.toml")
    for source, says in (
        (tmp_path / "none.toml", "no such file"),
        (tmp_path, "is a folder"),
        (latin, "byte 9 is not UTF-8"),
        (huge, "is larger than 1,000,000 bytes"),
        ("a100-80gb-sxn", "did you mean a100-80gb-sxm"),
        ("", "no system ''"),
        ("nothing-like-it", "known:"),
        ("a\0.toml", "a"),
        ("x" * 5000 + ".toml", "xxx"),
        (3, "expected a catalogue name"),
        (b"h100-sxm", "expected a catalogue name"),
    ):
        with pytest.raises(InputError) as caught:
            System.load(source)  # type: ignore[arg-type]
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_part_of_a_name_leads_to_the_systems_that_go_on_from_it() -> None:
    """However many other names are near it: "h200" is nearer to "gh200" than to "h200-sxm"."""
    names = catalogue_names()
    files = [tomllib.loads((CATALOGUE / f"{name}.toml").read_text(encoding="utf-8")) for name in names]
    aliases = {alias.casefold() for file in files for alias in file.get("aliases", [])}
    parts = {name.rpartition("-")[0] for name in names if "-" in name} - {*names} - aliases
    assert {"h200", "b200", "a100"} <= {part.partition("-")[0] for part in parts}
    for part in parts:
        with pytest.raises(InputError) as caught:
            System.load(part)
        found = str(caught.value).partition("did you mean ")[2].rstrip("?").split(" or ")
        assert found[0].startswith(f"{part}-"), part
        assert len(found) == len({*found})


def test_a_cycle_of_two(tmp_path: Path) -> None:
    write(tmp_path, 'base = "b.toml"', "a.toml")
    write(tmp_path, 'base = "a.toml"', "b.toml")
    with pytest.raises(InputError, match=r"cycle a\.toml -> b\.toml -> a\.toml"):
        System.load(tmp_path / "a.toml")


def test_every_assumed_value_is_within_its_limits() -> None:
    for key, (value, low, high, statistic) in system_symbols.ASSUMED.items():
        limits = system_symbols.SYMBOLS[key]
        assert (0 if limits.zero else limits.low) <= low <= value <= high <= limits.high
        assert statistic


@pytest.mark.parametrize("name", catalogue_names())
def test_every_efficiency_has_both_ends_of_its_spread(name: str) -> None:
    for symbol, quantity in System.load(name).quantities.items():
        if symbol.endswith("_efficiency"):
            assert quantity.low is not None, symbol
            assert quantity.high is not None, symbol
            assert 0 < quantity.low <= quantity.value <= quantity.high <= 1, symbol


def test_a_system_has_the_generation_of_its_file_or_of_its_base(tmp_path: Path) -> None:
    assert System.load("gb300-nvl72").generation == System.load("gb200-nvl72").generation == "Blackwell"
    assert System.load("h100-sxm").generation == ""
    own = tmp_path / "own.toml"
    own.write_text('base = "b200-sxm"\nmemory_bandwidth = "9 TB/s"\n', encoding="utf-8")
    assert System.load(own).generation == "Blackwell"
    own.write_text('base = "b200-sxm"\ngeneration = 5\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"own.toml: generation: found 5"):
        System.load(own)
