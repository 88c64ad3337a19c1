"""What a token, and a whole training run, takes in joules and dollars."""

from __future__ import annotations

import pytest
from support.run_cases import make

from symperf.formulas.technology import cost, energy


def test_what_a_token_takes_is_that_of_its_formulas() -> None:
    """Shares of a step: of its energy, and of what its devices cost for its time."""
    run = make("llama-2-7b", "h100-sxm", 16, dp=8)
    spent, paid = run.energy(), run.cost()
    assert spent.per_token == pytest.approx(float(energy.token_energy(spent.total, spent.tokens)))
    used = (paid.devices, paid.time, paid.device_hour / 3600)
    assert paid.per_million_tokens == pytest.approx(1e6 * float(cost.token_cost(*used, paid.tokens)))
    assert paid.of_tokens(300 * paid.tokens) == pytest.approx(float(cost.training_run_cost(*used, 300)))
