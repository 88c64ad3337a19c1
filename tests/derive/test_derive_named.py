"""What a derivation shows over formulas is the closed form that the run computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.derive_cases import ALL, generation, make
from support.effort import some
from support.named_calls import expand_calls

from symperf.derive import derive
from symperf.derive.forms import memory_forms, time_forms, values_of
from symperf.derive.whole import definitions, part_symbol, shown_definitions, time_definitions
from symperf.formulas.language.named_calls import NamedCall, name_calls
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.evaluation.base_run import BaseRun

RUNS: dict[str, Callable[[], BaseRun]] = {
    **ALL,
    "experts": lambda: make("mixtral-8x7b", "h100-sxm", tp=2, ep=8, dp=8, sequence_parallel=True),
    "latent, in 8 bits": lambda: make("deepseek-v3", "h100-sxm", 2048, ep=64, dp=64, precision="fp8", zero=1),
    "recurrent": lambda: make("mamba-2.8b", "h100-sxm", dp=8),
    "bidirectional": lambda: make("llama-2-70b", "h100-sxm", 256, tp=8, pp=4, dp=2, schedule="dualpipe"),
    "latent generation": lambda: generation("deepseek-v3", "h100-sxm", tp=16),
    "recurrent generation": lambda: generation("mamba-2.8b", "h100-sxm"),
    "chunks": lambda: generation("llama-4-scout-17b-16e", "h100-sxm", tp=8),
    "windows": lambda: generation("mistral-7b", "h100-sxm", generate=5000),
}


def value(found: list[tuple[str, Any]], run: BaseRun) -> float:
    """The value of the first definition, computed from the definitions alone."""
    values, known = values_of(run), {}
    forms = {part_symbol(name): form for name, form in found[1:]}

    def settle(form: Any) -> Any:
        opened = expand_calls(form, known)
        for symbol in sorted(opened.free_symbols & forms.keys(), key=str):
            if symbol in forms:
                values.define(symbol, values(settle(forms.pop(symbol))))
        return opened

    return values(settle(found[0][1]))


@pytest.mark.parametrize("of", ["time", "memory"])
@pytest.mark.parametrize("name", some(RUNS, 0.27))
def test_what_is_shown_has_the_value_of_the_run(name: str, of: str) -> None:
    """Also away from the point at which it was derived: it is the whole closed form."""
    run = RUNS[name]()
    shown = time_definitions(run) if of == "time" else shown_definitions(derive(run, of))
    assert any(form.has(NamedCall) for _, form in shown)
    assert not {*run.time.terms, *run.memory.terms} & set(SYMBOLS)
    for moved in (run, run.bind(micro_batch=2), run.bind(memory_bandwidth=1e12, hidden_size=5120)):
        assert value(shown, moved) == pytest.approx(moved.value(of), rel=1e-12)


@pytest.mark.parametrize("name", some(RUNS, 0.27))
def test_terms_are_the_same_before_and_after_they_were_shown(name: str) -> None:
    """No call of a formula is left in what is computed, and opening the calls gives the same terms."""
    run = RUNS[name]()
    for forms_of in (time_forms, memory_forms):
        with name_calls():
            named = forms_of(run)
        plain = forms_of(run)
        assert not any(form.has(NamedCall) for form in plain.terms.values())
        assert list(named.terms) == list(plain.terms)
        opened = {path: expand_calls(form) for path, form in named.terms.items()}
        differ = [path for path, form in plain.terms.items() if opened[path] != form]
        assert all((opened[path] - plain.terms[path]).expand() == 0 for path in differ), differ


def test_a_long_argument_of_several_calls_has_the_name_of_the_parameter() -> None:
    """The parameters of a device, which three kernels of the optimizer read."""
    shown = dict(shown_definitions(derive(make(tp=8, pp=8))))
    parameters = SYMBOLS["parameters"].symbol
    assert shown["optimizer/adam"].has(parameters)
    assert not shown["parameters"].has(parameters)
    assert "parameters" not in dict(definitions(derive(make(tp=8, pp=8))))


def test_switches_and_counts_are_simple() -> None:
    """[p > 1] is not [[p > 1] + 1 > 1], and what is at least one is not max(1, it)."""
    text = derive(make("llama-2-70b", "h100-sxm", tp=8, pp=4)).latex()
    assert "> 1] + 1 > 1]" not in text
    assert r"\max(1, " not in text.split("Formulas used")[0]
