"""Profiles on a base, and what their kernels reach on a system: which constants hold, and which files are refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some

import symperf as sf
from symperf.common.errors import InputError
from symperf.infer.stack import Stack
from symperf.infer.stack import names as profiles
from symperf.systems.kernel_constants import FAMILIES, families_of
from symperf.systems.system import catalogue_names

if TYPE_CHECKING:
    from pathlib import Path

H100, H200 = "h100-sxm", "h200-sxm"


def profile(folder: Path, text: str, name: str = "mine") -> str:
    path = folder / f"{name}.toml"
    path.write_text(f'base = "vllm"\n{text}', encoding="utf-8")
    return str(path)


def value(stack: str, name: str, system: Any = H100, precision: str | None = None, **values: Any) -> float:
    run = sf.inference(
        "llama-2-7b", system, sf.Plan(precision=precision), batch=1, prompt=8, generate=2, stack=stack, **values
    )
    return float(run.bound[name][0])


def test_a_profile_on_a_base_has_what_it_does_not_say_from_it(tmp_path: Path) -> None:
    mine = Stack.load(profile(tmp_path, "kv_block = 3\n"))
    base = Stack.load("vllm")
    assert mine.name == "mine"
    assert mine.quantities["kv_block"].value == 3
    assert dataclasses.replace(
        mine, name=base.name, quantities={**mine.quantities, "kv_block": base.quantities["kv_block"]}
    ) == base  # fmt: skip


def test_constants_hold_on_their_system_and_its_like(tmp_path: Path) -> None:
    stack = profile(
        tmp_path, f'[on.{H100}]\nlaunch_latency = "9 us"\nsource = "here"\n[on.any]\nlaunch_latency = 8e-6\n'
    )
    assert value(stack, "launch_latency") == 9e-6
    assert value(stack, "launch_latency", H200) == 8e-6
    child = tmp_path / "child.toml"
    child.write_text(f'base = "{H100}"\nmemory_bandwidth = "3 TB/s"\n', encoding="utf-8")
    assert value(stack, "launch_latency", str(child)) == 9e-6
    assert value(stack, "memory_bandwidth", str(child)) == 3e12


def test_what_a_user_states_of_a_system_wins(tmp_path: Path) -> None:
    stack = profile(tmp_path, '[on.any]\nlaunch_latency = "9 us"\nmatrix_efficiency = 0.5\n')
    assert value(stack, "launch_latency", launch_latency=1e-6) == 1e-6
    child = tmp_path / "child.toml"
    child.write_text(f'base = "{H100}"\nlaunch_latency = "2 us"\n', encoding="utf-8")
    assert value(stack, "launch_latency", str(child)) == 2e-6
    assert value(stack, "matrix_efficiency", str(child)) == 0.5
    bound = sf.inference("llama-2-7b", H100, batch=1, prompt=8, generate=2, stack=stack).bind(launch_latency=3e-6)
    assert bound.bound["launch_latency"][0] == 3e-6


def test_constants_of_a_format_hold_under_it_only(tmp_path: Path) -> None:
    stack = profile(tmp_path, "[on.any.formats.fp8]\nnarrow_efficiency = 0.4\n")
    assert value(stack, "matrix_efficiency", precision="fp8") == 0.4
    assert value(stack, "half_efficiency", precision="fp8") == value("vllm", "matrix_efficiency")
    assert value(stack, "matrix_efficiency") == value("vllm", "matrix_efficiency")


def test_the_spread_of_a_format_is_its_own(tmp_path: Path) -> None:
    low_high = "{value = 0.4, low = 0.1, high = 0.5}"
    stack = profile(tmp_path, f"[on.any.formats.fp8]\nnarrow_efficiency = {low_high}\n")
    asked = {"batch": 64, "prompt": 512, "generate": 2, "stack": stack}
    ends = {
        effect.name: (effect.low, effect.high)
        for effect in sf.inference("llama-2-7b", H100, sf.Plan(precision="fp8"), **asked).interval("prefill").effects
    }
    assert ends["matrix_efficiency"] == (0.1, 0.5)


def test_products_in_16_bits_keep_their_constants_beside_narrow_ones(tmp_path: Path) -> None:
    """Logits beside products in 8 bits take as long as in a plan of 16 bits, whatever a format states."""
    stack = profile(
        tmp_path,
        '[on.any]\ninner_latency = "1 ns"\ninner_ends = 100\ncast_latency = "1 us"\ncast_passes = 2\n'
        "cast_ends = 10\nnarrow_ends = 10\nsplit_latency = 1e-3\n"
        '[on.any.formats.fp8]\ninner_latency = "40 ns"\nnarrow_efficiency = 0.4\n',
    )

    def times(precision: str) -> dict[str, float]:
        plan = sf.Plan(precision=precision)
        run = sf.inference("llama-2-7b", H100, plan, batch=1, prompt=8, generate=2, stack=stack)
        return {row.name: row.time_s for row in run.operations() if row.phase == "decode"}

    wide, narrow = times("bf16"), times("fp8")
    assert narrow["head/logits"] == pytest.approx(wide["head/logits"], rel=1e-12)
    assert narrow["layer/attention/output"] > 32 * 4096 * 20e-9 > wide["layer/attention/output"]


def test_constants_may_lie_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "reached.toml").write_text('[on.any]\nlaunch_latency = "7 us"\n', encoding="utf-8")
    stack = profile(tmp_path, 'on = "reached.toml"\n')
    assert value(stack, "launch_latency") == 7e-6
    (tmp_path / "reached.toml").write_text('[any]\nlaunch_latency = "7 us"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"on: reached\.toml: unknown key 'any', expected tables"):
        Stack.load(stack)


def test_systems_of_bases_are_taken_together(tmp_path: Path) -> None:
    first = profile(tmp_path, f'[on.{H100}]\nlaunch_latency = "9 us"\n[on.any]\nlaunch_latency = "8 us"\n', "first")
    second = tmp_path / "second.toml"
    second.write_text(f'base = "{first}"\n[on.{H200}]\nlaunch_latency = "7 us"\n', encoding="utf-8")
    systems = (H100, H200, "a100-80gb-sxm")
    assert [value(str(second), "launch_latency", system) for system in systems] == [9e-6, 7e-6, 8e-6]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("on = 3\n", "on: found 3, expected a table"),
        ('on = "none.toml"\n', "none.toml: no such file"),
        ("[on.any]\nlanch_latency = 1e-6\n", "on.any: unknown constant 'lanch_latency'; did you mean launch_latency"),
        ("[on.any]\nlaunch_latency = 7.0\n", "on.any: launch_latency: found 7.0"),
        ("[on.any.formats.fp9]\nnarrow_efficiency = 0.4\n", "formats: unknown format 'fp9'; did you mean fp8"),
        ("[on.any.formats.fp8]\nlaunch_latency = 1e-6\n", "formats.fp8: unknown constant 'launch_latency'"),
        ("[on.any.formats]\nfp8 = 1\n", "formats.fp8: found 1, expected a table"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Stack.load(profile(tmp_path, text))
    assert says in str(caught.value)
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("vlm", "base: stack: found 'vlm'"),
        ("none.toml", "base: no such file"),
        ("mine.toml", "base: found a cycle through mine.toml"),
        (" ", "base: found ' '"),
    ],
)
def test_bases_that_are_none_are_refused(tmp_path: Path, base: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "{base}"\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Stack.load(str(path))
    assert says in str(caught.value)


def test_a_family_is_there_with_all_its_constants() -> None:
    for family, names in FAMILIES.items():
        assert family in families_of(names)
        for missing in names:
            assert family not in families_of(set(names) - {missing})


def test_a_name_that_is_nearly_one_of_a_system_is_told(tmp_path: Path) -> None:
    def told(name: str) -> list[str]:
        stack = profile(tmp_path, f'[on.{name}]\nlaunch_latency = "9 us"\n')
        run = sf.inference("llama-2-7b", H100, batch=1, prompt=8, generate=2, stack=stack)
        return [each for each in run.warnings if each.startswith("on.")]

    (warning,) = told("h101-sxm")
    assert warning.startswith("on.h101-sxm: no system of this name; did you mean h100-sxm")
    assert not told(H200)
    assert not told("abacus")


WITHOUT_UNITS = [name for name in catalogue_names() if "compute_units" not in sf.System.load(name).quantities]
"""Systems of which nobody says how many units share the blocks of a kernel."""


@pytest.mark.parametrize("stack", [name for name in profiles() if Stack.load(name).reached])
def test_every_profile_answers_on_systems_without_units(stack: str, tmp_path: Path) -> None:
    child = tmp_path / "mine.toml"
    text = f'base = "{stack}"\n' + "".join(f"[on.{name}]\ndecode_block_latency = 1e-6\n" for name in WITHOUT_UNITS)
    child.write_text(text, encoding="utf-8")
    assert WITHOUT_UNITS
    for system in some(WITHOUT_UNITS, 0.25):
        for model in ("llama-2-7b", "deepseek-v3"):
            for profiled in (stack, str(child)):
                run = sf.inference(model, system, batch=1, prompt=64, generate=2, stack=profiled)
                assert run.value("time") > 0
                assert not {"block_latency", "decode_block_latency"} & set(run.bound)
