"""Every registered formula is documented, cited, typed, and claims exactly what the fold can prove of it.

New formula pages are found by themselves. A (formula, symbol) pair that the fold cannot decide is listed below with
the reason; the list is exact, so it shrinks when a formula gets better and cannot grow unseen.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest
from hypothesis import given
from support.effort import part
from support.oracle import worst_bend, worst_fall
from support.strategies import seeds

import symperf.formulas
from symperf.formulas.language.atoms import ATOMS
from symperf.formulas.language.dimension import dimension_of
from symperf.formulas.language.formula import REGISTRY, Formula
from symperf.formulas.language.symbols import SYMBOLS, dimensions
from symperf.formulas.sources import SOURCES

for _page in pkgutil.walk_packages(symperf.formulas.__path__, "symperf.formulas."):
    importlib.import_module(_page.name)

MORE_ADAPTERS = "more ranks in a domain: more hops and bytes inside, fewer bytes on each adapter"
WAVES = "waves of whole tiles: more units make fewer waves, each unit slower at the device's given rate"
TILES = "larger tiles are fewer, re-read less, and pad more"
MORE_STAGES = "more stages take longer to fill and have more micro-batches in flight to fill them with"
ONE_RANK = "one rank alone moves nothing, and of two or more each has fewer sums to send the more there are"
NOTHING_LEFT = "a larger part of less than nothing, where what is no cache exceeds the memory"
UNDECIDED: dict[tuple[str, str], str] = {
    ("budget_of_free", "memory_utilization"): NOTHING_LEFT,
    ("budget_of_static", "memory_utilization"): NOTHING_LEFT,
    (
        "prefilling_ranks_seen",
        "ranks",
    ): "the given rank is a smaller part of more, of which the others prefill by chance",
    ("padded_vocabulary_share", "vocab_multiple"): "a multiple of two may be padded less than one of one: ceilings",
    ("reserved_tokens", "context_tokens"): "a context that is too long to be prefilled whole is cut into chunks",
    ("hierarchical_all_gather_time", "inner_ranks"): MORE_ADAPTERS,
    ("hierarchical_reduce_scatter_time", "inner_ranks"): MORE_ADAPTERS,
    ("hierarchical_all_reduce_time", "inner_ranks"): MORE_ADAPTERS,
    ("flat_ring_all_reduce_time", "inner_ranks"): MORE_ADAPTERS,
    ("flat_tree_all_reduce_time", "inner_ranks"): MORE_ADAPTERS,
    ("pipelined_all_reduce_time", "inner_ranks"): MORE_ADAPTERS,
    ("group_all_reduce_time", "inner_ranks"): MORE_ADAPTERS,
    ("pipelined_all_gather_time", "inner_ranks"): MORE_ADAPTERS,
    ("pipelined_reduce_scatter_time", "inner_ranks"): MORE_ADAPTERS,
    ("group_all_gather_time", "inner_ranks"): MORE_ADAPTERS,
    ("group_reduce_scatter_time", "inner_ranks"): MORE_ADAPTERS,
    ("group_collective_time", "inner_ranks"): MORE_ADAPTERS,
    ("broadcast_fill_time", "inner_ranks"): MORE_ADAPTERS,
    (
        "crowded_transfer_time",
        "pair_crowding",
    ): "of the time on a link a part is shared: more pairs take more",
    ("tiled_compute_time", "compute_units"): WAVES,
    ("tiled_compute_time", "tile_columns"): TILES,
    ("tiled_compute_time", "tile_rows"): TILES,
    **{
        (name, symbol): WAVES if symbol == "compute_units" else TILES
        for name in ("whole_tile_time", "split_tile_time")
        for symbol in ("compute_units", "tile_columns", "tile_rows")
    },
    **{
        (f"{name}_time", "tile_narrow"): TILES
        for name in ("looped_compute", "looped_work", "looped_matmul", "looped_thin_matmul", "narrow_matmul")
    },
    ("computed_keys", "visible_keys"): "a key more fills a place that was computed in part",
    ("unit_share", "cache_blocks"): WAVES,
    ("unit_share", "compute_units"): WAVES,
    ("tiled_matmul_time", "compute_units"): WAVES,
    ("tiled_matmul_time", "tile_long"): TILES,
    ("tiled_matmul_time", "tile_narrow"): TILES,
    ("tiled_matmul_time", "tile_wide"): TILES,
    ("quantised_matmul_time", "compute_units"): WAVES,
    ("quantised_matmul_time", "tile_long"): TILES,
    ("quantised_matmul_time", "tile_narrow"): TILES,
    ("quantised_matmul_time", "tile_wide"): TILES,
    ("split_compute_time", "compute_units"): WAVES,
    ("split_compute_time", "tile_columns"): TILES,
    ("split_compute_time", "tile_rows"): TILES,
    **{
        (name, symbol): WAVES if symbol == "compute_units" else TILES
        for name in ("thin_matmul_time", "quantised_thin_matmul_time")
        for symbol in ("compute_units", "tile_long", "tile_narrow", "tile_wide", "tile_thin")
    },
    ("windowed_generation_time", "first_context"): "longer contexts leave fewer steps that grow",
    ("windowed_generation_time", "sliding_window"): "a wider window leaves fewer steps at its full width",
    ("windowed_split_generation_time", "first_context"): "longer contexts leave fewer steps that grow",
    ("windowed_split_generation_time", "sliding_window"): "a wider window leaves fewer steps at its full width",
    **{
        (name, symbol): "contexts start again at the end of each chunk"
        for name in ("chunked_generation_time", "chunked_split_generation_time")
        for symbol in ("steps", "first_context", "sliding_window")
    },
    **{
        (name, symbol): "contexts start again at the end of each chunk"
        for name in ("chunk_place", "chunk_room", "later_chunk_steps", "whole_chunks")
        for symbol in ("first_context", "sliding_window")
    },
    ("expected_experts", "num_experts"): "more experts to choose from, each of which is chosen less often",
    ("places_per_token", "places"): "more places to lie in, each of which is chosen less often",
    ("direct_exchange_time", "outer_ranks"): "more domains leave less on the links inside, and send more by adapters",
    ("bulk_exchange_time", "ranks"): "more devices have a token each, and each is chosen less often",
    ("bulk_exchange_time", "outer_ranks"): "more domains have fewer devices each, and send more by adapters",
    ("bulk_exchange_time", "chosen_domains"): "more domains to lie in, each of which is chosen less often",
    **{
        (name, "routing_skew"): "a steeper law has fewer full experts, which are fuller"
        for name in ("load_variance", "skewed_imbalance")
    },
    ("speculative_token_time", "draft_length"): "a longer draft costs more and yields more: there is a best one",
    ("speculative_speedup", "draft_length"): "a longer draft costs more and yields more: there is a best one",
    ("chunked_attention_time", "chunks"): "more chunks read the cache more often, but each has fewer tokens",
    ("residual_sources", "num_layers"): "more blocks are more sources, of which the first layers see few",
    ("residual_sources", "residual_block"): "longer blocks are fewer sources, and the last one is shorter",
    ("finite_run_time", "burst_share"): "a mean of two times, whichever is longer",
    ("spare_of_queue", "occupancy"): "a difference, which the fold gives no sign",
    ("paged_tokens", "kv_block"): "longer blocks hold more slots, but fewer blocks are needed",
    **{
        (name, "ssm_chunk_size"): "longer chunks cost more inside and pad more, but are fewer"
        for name in (
            "ssd_flops",
            "ssd_bytes",
            "ssd_backward_flops",
            "ssd_backward_bytes",
            "delta_rule_flops",
            "delta_rule_bytes",
            "delta_solve_flops",
            "delta_rule_backward_flops",
            "delta_rule_backward_bytes",
            "channel_delta_bytes",
            "matrix_memory_flops",
            "wkv_flops",
            "wkv_bytes",
            "wkv_backward_flops",
            "wkv_backward_bytes",
            "matrix_memory_backward_flops",
            "channel_delta_backward_flops",
            "channel_delta_backward_bytes",
            "lightning_flops",
            "lightning_backward_flops",
        )
    },
    ("blocked_attention_time", "block_rows"): TILES,
    (
        "blocked_attention_time",
        "compute_units",
    ): WAVES,
    **{
        (name, "first_context"): "a longer context has fewer steps below a block of keys, which take as long as a block"
        for name in ("growing_attention_time", "windowed_growing_time")
    },
    ("windowed_growing_time", "sliding_window"): "a wider window has longer steps, but fewer of them are whole",
    **{
        ("chunked_growing_time", symbol): "what is left of the last chunk is a difference"
        for symbol in ("first_context", "sliding_window", "steps")
    },
    ("two_sided_pairs", "sequence"): "both sides count the diagonal, which is taken off once: a difference",
    ("two_sided_pairs", "sliding_window"): "as window_pairs, of which it is made",
    ("window_pairs", "sliding_window"): "a wider window makes longer rows, but fewer of them are whole",
    **{
        ("chunk_pairs", symbol): "what is left of the last chunk is a difference"
        for symbol in ("sequence", "sliding_window")
    },
    **{
        (name, symbol): "what later queries do not see, or see again, is a difference"
        for name, symbols in {
            "entry_pairs": "sequence compress_ratio",
            "selected_entry_pairs": "sequence compress_ratio index_top_keys",
            "block_pairs": "sequence index_block_size index_top_blocks",
        }.items()
        for symbol in symbols.split()
    },
    ("block_keys", "context"): "the query's own block starts again and again",
    ("block_keys", "index_block_size"): "larger blocks hold more, and the query's own is filled less",
    ("zero_bubble_h1_time", "stages"): MORE_STAGES,
    ("zero_bubble_h2_time", "stages"): MORE_STAGES,
    ("zero_bubble_1p_time", "stages"): MORE_STAGES,
    ("zero_bubble_2p_time", "stages"): MORE_STAGES,
    ("dual_pipe_time", "stages"): "more stages leave fewer pairs of passes and more that run alone",
    **{
        (name, symbol): "more passes run ahead of the first gradient, fewer in turn with one"
        for name, symbols in {
            "one_f_one_b_later_time": "micro_batches stages stage_number",
            "zero_bubble_stage_time": "stages in_flight stage_number",
            "zero_bubble_stage_flush_time": "stages in_flight stage_number",
            "dual_pipe_begin_time": "stages stage_number",
            "dual_pipe_device_time": "stages stage_number",
            "dual_pipe_middle_end_time": "stages",
        }.items()
        for symbol in symbols.split()
    },
    ("round_wait_time", "chunk_time"): "passes of its own leave less to wait for; the fold gives a difference no sign",
    ("round_wait_time", "stages"): "passes of its own leave less to wait for; the fold gives a difference no sign",
    **{
        ("interleaved_device_time", symbol): "own passes are work, and leave less to wait for; a difference has no sign"
        for symbol in (
            *("first_forward_time", "first_backward_time", "last_forward_time", "last_backward_time"),
            *("stages", "stage_number"),
        )
    },
    ("zero_bubble_h2_idle_time", "forward_time"): "slower forward passes fill the start and lengthen the end",
    ("no_bubble_in_flight", "forward_time"): "slower forward passes fill the start and lengthen the end",
    ("sharded_backward_time", "units"): "one unit alone has neither a gather nor a reduction beside it",
    ("ring_attention_backward_time", "cp"): "one part alone sends nothing, and has no step beside which to send",
    ("hybrid_reduction_time", "inner_ranks"): MORE_ADAPTERS,
    ("multimem_all_reduce_time", "ranks"): ONE_RANK,
    ("scale_up_multimem_all_reduce_time", "ranks"): ONE_RANK,
    ("scale_up_switched_all_reduce_time", "ranks"): ONE_RANK,
    ("group_switched_all_reduce_time", "inner_ranks"): ONE_RANK,
    ("padded_group_rows", "groups"): TILES,
    ("padded_group_rows", "tile_rows"): TILES,
    ("interleaved_stage_in_flight", "vpp"): "more chunks are smaller, but their number in flight grows with them",
    **{
        ("uneven_stage_layers", symbol): "a difference, which the fold gives no sign"
        for symbol in ("num_layers", "stages", "stage_number")
    },
    **{
        ("leading_layers_of_chunks", symbol): "what is left of the last round is a difference"
        for symbol in ("chunk_layers", "layers_in_front", "stage_number", "stages")
    },
    ("operating_voltage", "threshold_voltage"): "a higher threshold allows less overdrive at a higher voltage",
    ("operating_frequency", "threshold_voltage"): "the nominal voltage and the law move with the threshold",
    ("operating_frequency", "nominal_overdrive"): "a higher nominal voltage is a slower law at a higher power level",
    ("ring_tree_crossover_bytes", "ranks"): "a difference of hops, which the fold gives no sign",
    ("ring_tree_crossover_bytes", "link_bandwidth"): "a factor of unproved sign: at whole ranks it is not negative",
    ("ring_tree_crossover_bytes", "link_latency"): "a factor of unproved sign: at whole ranks it is not negative",
}

each = pytest.mark.parametrize("record", REGISTRY.values(), ids=REGISTRY.keys())


def _found(record: Formula, direction: int) -> set[str]:
    return {str(symbol) for symbol, way in record.judgement().directions.items() if way == direction}


def test_there_are_formulas() -> None:
    """The walk imports the pages, and they register."""
    assert len(REGISTRY) > 20
    assert {record.page for record in REGISTRY.values()} >= {"all_reduce", "roofline", "matmul"}


def test_no_two_formulas_share_a_glyph() -> None:
    """An answer shows formulas by their glyphs."""
    glyphs = [record.glyph for record in REGISTRY.values()]
    assert sorted(glyph for glyph in set(glyphs) if glyphs.count(glyph) > 1) == []


@each
def test_it_is_documented(record: Formula) -> None:
    """One sentence, what it assumes, where it comes from, a doctest of the closed form, a glyph."""
    assert re.fullmatch(r"[A-Z].*\.", record.sentence), record.sentence
    assert record.assumes
    assert record.derivation
    assert re.search(rf">>> .*\b{record.name}\(", record.doc)
    assert record.glyph


@each
def test_its_reference_is_listed(record: Formula) -> None:
    """The citation is a key of the bibliography."""
    assert record.source in SOURCES


@each
def test_its_latex_speaks_in_glyphs(record: Formula) -> None:
    """No Python name of a symbol or an atom is left in the equation, and its symbols have distinct glyphs."""
    text = record.latex()
    assert text.startswith(record.glyph)
    glyphs = {symbol: SYMBOLS[str(symbol)].glyph for symbol in record.expression.free_symbols if str(symbol) != "flop"}
    assert len(set(glyphs.values())) == len(glyphs), sorted(glyphs.values())
    assert all(glyph in text for glyph in glyphs.values())
    names = {name for name, entry in SYMBOLS.items() if len(name) > 2 and name != entry.glyph}
    bare = re.sub(r"\\[a-zA-Z]+", " ", text.removeprefix(record.glyph).replace(r"\_", "_"))
    assert not set(re.findall(r"[A-Za-z_0-9]+", bare)) & (names | {a.__name__ for a in ATOMS})
    assert "operatorname" not in text


@each
def test_its_dimension_is_as_claimed(record: Formula) -> None:
    """The closed form adds up to the claimed dimension."""
    assert dimension_of(record.expression, dimensions()) == record.dimension


@each
def test_its_claims_are_what_the_fold_proves(record: Formula) -> None:
    """Rising, falling and curvature are exactly what the fold infers: nothing more, nothing left out."""
    assert set(record.increasing) == _found(record, 1)
    assert set(record.decreasing) == _found(record, -1)
    assert record.curvature == record.judgement().curvature


@each
@given(seed=seeds)
@part(0.1)
def test_its_claimed_directions_hold_in_numbers(record: Formula, seed: int) -> None:
    """At random points of the domains the closed form never moves against a claim."""
    for names, direction in ((record.increasing, 1), (record.decreasing, -1)):
        for name in names:
            fall = worst_fall(record.expression, SYMBOLS[name].symbol, direction, seed, size=256)
            assert fall < 1e-9, name


@pytest.mark.parametrize("name", [name for name, record in REGISTRY.items() if record.curvature])
@given(seed=seeds)
@part(0.2)
def test_its_claimed_curvature_holds_in_numbers(name: str, seed: int) -> None:
    """At geometric midpoints the closed form bends as claimed."""
    record = REGISTRY[name]
    assert record.curvature is not None
    assert worst_bend(record.expression, record.curvature, seed, size=256) < 1e-9


def _pairs(direction: int | None = None) -> set[tuple[str, str]]:
    return {
        (record.name, str(symbol))
        for record in REGISTRY.values()
        for symbol, way in record.judgement().directions.items()
        if direction is None or way == direction
    }


def test_what_is_undecided_is_listed_with_its_reason() -> None:
    """The table of undecided pairs is exact and says why for each."""
    assert set(UNDECIDED) == _pairs(0)
    assert all(UNDECIDED.values())


def test_most_directions_are_proved() -> None:
    """At least four of five (formula, symbol) pairs have a proved direction."""
    assert len(_pairs(0)) <= 0.2 * len(_pairs())
