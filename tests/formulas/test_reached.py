"""Every formula is reached by a prediction, held against one by a test, or marked as a textbook form; and only these.

A mark is a line `Reference only:` in the docstring, which the book shows.
"""

from __future__ import annotations

import ast

import pytest
from support.paths import ROOT
from support.reached_cases import reached

from symperf.formulas.language.formula import REGISTRY

TIED = {
    "analysis/test_textbook_crossovers.py": {
        "test_tokens_at_which_a_product_becomes_compute_bound": "compute_bound_rows",
        "test_context_at_which_attention_flops_pass": "attention_mlp_crossover",
    },
    "infer/test_decode_bounds.py": {
        "test_a_product_turns_at_its_ridge_batch": "product_ridge_batch ridge_batch",
        "test_work_equals_traffic_at_the_balance_batch": "balance_batch",
        "test_no_batch_makes_a_step_compute_bound_beyond_the_context_limit": "context_limit",
        "test_attention_turns_at_its_group": "attention_ridge_group",
        "test_all_reduces_outlast_the_weights_of_a_layer_from_the_degree_on": "reduce_bound_degree",
    },
    "operations/test_schedule.py": {
        "test_the_step_is_the_schedule_of_the_literature": "bubble_fraction gpipe_time interleaved_time "
        "one_f_one_b_time",
    },
    "runs/test_golden_2026.py": {
        "test_keys_that_a_step_sees": "block_keys",
    },
    "serve/test_serving_laws.py": {
        "test_affine_decoding_is_exact": "affine_capacity decoding_sequences loaded_iteration_time",
    },
    "serve/test_serving_pools.py": {
        "test_an_instance_that_prefills_serves_the_closed_form": "prefill_pool_load",
    },
    "spending/test_tokens.py": {
        "test_what_a_token_takes_is_that_of_its_formulas": "token_cost token_energy training_run_cost",
    },
    "infer/test_latent_kernels.py": {"test_whole_contexts_take_turns": "unit_share"},
    "train/test_formulas_of_papers.py": {
        "test_the_state_is_that_of_the_zero_paper": "replicated_state_memory zero_1_memory zero_2_memory zero_3_memory",
        "test_the_traffic_is_that_of_the_zero_paper": "zero_2_traffic_bytes zero_3_traffic_bytes",
        "test_hybrid_sharding_is_that_of_the_fsdp_paper": "hybrid_between_bytes hybrid_gather_time "
        "hybrid_reduction_time",
        "test_experts_on_a_device_are_those_of_their_formulas": "device_expert_flops device_expert_parameters "
        "dispatch_time",
        "test_a_ring_passes_the_bytes_of_its_formulas": "ring_attention_bytes ring_attention_backward_bytes",
        "test_dealt_heads_take_the_bytes_and_the_time_of_their_formulas": "ulysses_bytes ulysses_time",
        "test_gathered_keys_take_the_time_of_their_formulas": "gathered_key_value_time scattered_key_value_time",
        "test_muon_iterates_with_the_flops_of_its_formula": "newton_schulz_flops",
        "test_uneven_stages_take_the_time_of_their_formula": "uneven_layers_time",
    },
    "train/test_documents.py": {
        "test_moments_are_those_of_the_formulas": "token_document_length attention_variation",
    },
    "train/test_parallel_laws.py": {
        "test_the_ring_takes_the_time_of_its_formula": "ring_attention_time ring_attention_backward_time",
        "test_a_ring_merges_what_its_steps_found": "merged_partials_bytes",
    },
    "train/test_training.py": {
        "test_composed_model_flops_are_the_published_formula": "gpt_model_flops",
        "test_composed_hardware_flops_are_the_published_formula": "gpt_hardware_flops",
        "test_composed_parameters_are_the_published_formula": "gpt_parameters",
        "test_layer_activations_are_the_published_formula": "gpt_layer_bytes",
    },
}
"""Formulas that a test holds against a prediction: file of `tests/`, name of the test, formulas."""
NAMED = [name for tests in TIED.values() for names in tests.values() for name in names.split()]


@pytest.fixture(scope="module", name="called")
def _called() -> set[str]:
    return reached()


def test_every_formula_is_reached_or_tied_or_marked(called: set[str]) -> None:
    """None says anything that no prediction is known to agree with, and does not say so."""
    marked = {name for name, record in REGISTRY.items() if record.reference_only}
    assert set(REGISTRY) - called - marked == set(NAMED)
    assert len(set(NAMED)) == len(NAMED)


def test_none_is_marked_that_a_prediction_calls(called: set[str]) -> None:
    """A mark that is no longer true goes."""
    assert not [name for name in called if REGISTRY[name].reference_only]


@pytest.mark.parametrize("path", TIED)
def test_the_tests_that_tie_formulas_exist(path: str) -> None:
    """Each is a test of that file which names the formula."""
    source = (ROOT / "tests" / path).read_text(encoding="utf-8")
    tests = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    for test, names in TIED[path].items():
        assert test in tests
        assert all(name in source for name in names.split()), test
