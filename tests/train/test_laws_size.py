"""One structure has one program and one closed form, whatever the sizes."""

from __future__ import annotations

import dataclasses

import sympy
from support.law_cases import each_structure, predict
from support.points import STRUCTURES

from symperf.formulas.language.symbols import strip_units
from symperf.operations.schedule import closed_form
from symperf.train.build import step_tree
from symperf.train.compile import compile_step


def test_the_size_of_the_form_does_not_depend_on_sizes() -> None:
    """Layers, micro-batches and devices are numbers: one structure has one program, and one closed form."""
    plan = {"tp": 8, "pp": 8, "recompute": "full"}
    small, large = predict("gpt3-175b", 64, **plan), predict("gpt-530b", 35 * 4096, **(plan | {"pp": 35, "dp": 64}))
    assert small.structure == large.structure
    assert small.compiled is large.compiled
    assert small.time.expr == large.time.expr
    assert step_tree(small.structure) is step_tree(large.structure)
    assert len(small.compiled.program) < 2000
    assert sympy.count_ops(strip_units(closed_form(step_tree(small.structure)))) < 32_000


@each_structure
def test_a_step_has_one_program(name: str) -> None:
    """Equal structures give the same object, unequal ones another."""
    of = STRUCTURES[name]
    assert compile_step(of) is compile_step(dataclasses.replace(of))
    assert compile_step(of) is not compile_step(dataclasses.replace(of, zero=1 - of.zero))
