"""Kernels of latent attention that a software has on some systems: where they hold, and what they change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.known_kernels import known

import symperf as sf
from symperf.formulas.generation.block_decode import unit_share
from symperf.formulas.language.symbols import compute_units
from symperf.infer.latent_kernels import LatentKernels
from symperf.infer.stack import Stack
from symperf.systems.kernel_constants import FAMILIES

KEYS = ("wide_absorption", "whole_contexts", "widened_cache")
WITH_CASTS = [family for family in FAMILIES if family != "late_starts"]


def profile(folder: Path, *keys: str, places: str = '["h100-sxm"]') -> str:
    """A profile of which some of the keys hold on H100."""
    path = folder / f"{'-'.join(keys) or 'none'}.toml"
    lines = [f"{key} = {places}" for key in keys]
    path.write_text("\n".join(['base = "vllm"', "[latent]", *lines, 'source = "a test"']), encoding="utf-8")
    return str(path)


def terms(stack: str, system: Any = None, precision: str | None = None, **stated: Any) -> dict[str, float]:
    """Seconds of the kernels of a step of DeepSeek-V2-Lite over 4,000 keys."""
    work = {"batch": 4, "prompt": 4000, "generate": 2, "stack": stack} | stated
    plan = sf.Plan(precision=precision)
    answer = sf.inference("deepseek-v2-lite", system or known("h100-sxm", *WITH_CASTS), plan, **work)
    return {
        row.name.rpartition("/")[2]: row.each_s
        for row in answer.table()
        if row.name.startswith("decode/") and "/attention/" in row.name
    }


def test_a_profile_says_where_its_kernels_are() -> None:
    kernels = LatentKernels(None, ("h100-sxm",), ("b200-sxm",))
    assert kernels.on(sf.System.load("h100-sxm")) == KEYS[:2]
    assert kernels.on(sf.System.load("l40s")) == KEYS[:1]
    assert LatentKernels().on(sf.System.load("h100-sxm")) == ()


def test_absorbed_weights_of_scaled_blocks_may_stay_wide(tmp_path: Path) -> None:
    path = Path(profile(tmp_path, "widened_blocks"))
    kernels, system = Stack.load(path).latent, sf.System.load("h100-sxm")
    assert kernels.on(system, "fp8-block") == ("wide_absorption",)
    assert kernels.on(system, "fp8") == kernels.on(sf.System.load("l40s"), "fp8-block") == ()


def test_a_system_that_starts_from_another_has_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nbase = "h100-sxm"\n', encoding="utf-8")
    assert LatentKernels((), ("h100-sxm",)).on(sf.System.load(path)) == ("whole_contexts",)


def test_models_without_latents_have_one_structure(tmp_path: Path) -> None:
    stack = profile(tmp_path, *KEYS)
    work = {"batch": 1, "prompt": 10, "generate": 2, "stack": stack}
    assert sf.inference("llama-2-7b", "h100-sxm", sf.Plan(), **work).structure.latent == ()
    assert sf.inference("deepseek-v2-lite", "h100-sxm", sf.Plan(), **work).structure.latent == KEYS


@pytest.mark.parametrize(
    ("places", "says"),
    [
        ('["h100-smx"]', "latent.whole_contexts: unknown system 'h100-smx'; did you mean h100-sxm"),
        ('"all"', "latent.whole_contexts: found 'all', expected a list of names of systems, or \"any\""),
        ("[1]", "latent.whole_contexts: found [1], expected a list of names of systems"),
        ("true", "latent.whole_contexts: found True"),
        ('"any"\nwhole_context = "any"', "latent: unknown key 'whole_context'; did you mean whole_contexts?"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, places: str, says: str) -> None:
    with pytest.raises(sf.InputError) as error:
        Stack.load(profile(tmp_path, "whole_contexts", places=places))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_products_that_absorb_start_later(tmp_path: Path) -> None:
    times = [terms(profile(tmp_path), known("h100-sxm", *WITH_CASTS, absorb_latency=late)) for late in (0.0, 3e-6)]
    added = {name: times[1][name] - times[0][name] for name in times[0]}
    assert {name for name, more in added.items() if more > 1e-12} == {"absorb_key", "absorb_value"}
    assert added["absorb_key"] == pytest.approx(3e-6, rel=1e-9)


def test_wide_absorption_takes_as_long_in_every_format(tmp_path: Path) -> None:
    """In 16 bits the products are those of a plan in 16 bits; narrow ones cast a row for each head besides."""
    narrow, wide = profile(tmp_path), profile(tmp_path, "wide_absorption")
    for name in ("absorb_key", "absorb_value"):
        assert terms(wide, precision="fp8")[name] == pytest.approx(terms(wide)[name], rel=1e-12)
        assert terms(narrow)[name] == terms(wide)[name]
        cast = [
            terms(narrow, known("h100-sxm", *WITH_CASTS, cast_latency=start), precision="fp8")[name]
            for start in (1e-6, 5e-6)
        ]
        assert cast[1] - cast[0] == pytest.approx(4e-6, rel=1e-9)


def test_whole_contexts_take_turns(tmp_path: Path) -> None:
    """Products of few long contexts take as long as of one for each unit; of that many, as long as split ones."""
    split, whole = profile(tmp_path), profile(tmp_path, "whole_contexts")
    system = known("h100-sxm", *WITH_CASTS, latent_latency=0.0, block_latency=0.0, latent_efficiency=1e-3)
    work: dict[str, Any] = {"system": system, "kv_precision": None, "gap_latency": 0.0, "graph_removal": 1.0}
    units = sf.inference("deepseek-v2-lite", system, sf.Plan(), batch=1, prompt=9, generate=2).bound["compute_units"][0]
    for batch in (1, 7, int(units), int(units) + 1):
        times = [terms(stack, batch=batch, **work)["flash"] for stack in (split, whole)]
        assert times[1] / times[0] == pytest.approx(float(unit_share(batch).subs(compute_units, int(units))), rel=1e-9)


def test_a_widened_cache_is_read_twice_and_multiplied_in_16_bits(tmp_path: Path) -> None:
    plain, widened = profile(tmp_path), profile(tmp_path, "widened_cache")
    assert terms(widened)["flash"] == terms(plain)["flash"]
    assert terms(widened, kv_precision="fp8", batch=64)["flash"] > terms(widened, batch=64)["flash"]
    assert (
        terms(widened, kv_precision="fp8", batch=64)["flash"] > 2 * terms(plain, kv_precision="fp8", batch=64)["flash"]
    )
