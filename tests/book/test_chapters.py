"""Introductions of chapters: what they show is of the registry, and what they state by hand follows from it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import sympy

from symperf.book.book import Writer
from symperf.book.chapters import CHAPTERS, FOLDER, NOTATION, cited, introduction, names
from symperf.book.glossary import groups, module_of
from symperf.book.markup import MARKDOWN
from symperf.common.errors import InputError
from symperf.formulas.language.atoms import bubble
from symperf.formulas.language.symbols import SYMBOLS, strip_units
from symperf.formulas.registry import load
from symperf.formulas.sources import SOURCES

FORMULAS = load()
HEADINGS = ["The effect", "When it binds", "To remember", "Where it shows", "Sources"]
chapters = pytest.mark.parametrize("name", [chapter.name for chapter in CHAPTERS])


@pytest.fixture(scope="module")
def writer() -> Writer:
    return Writer(MARKDOWN, None, lambda kind, name: f"#{kind}-{name}")


@chapters
def test_an_introduction_says_what_each_must(name: str) -> None:
    """The same headings; one formula to remember; sources; about a page."""
    sections = introduction(name)
    assert [section.heading for section in sections] == HEADINGS
    remembered = [text for text in sections[2].paragraphs if text.startswith("= ")]
    assert len(remembered) == 1
    assert cited(name)
    words = sum(len(text.split()) for section in sections for text in section.paragraphs)
    assert 200 <= words <= 520


@pytest.mark.parametrize("name", names())
def test_what_an_introduction_names_is_there(name: str, writer: Writer) -> None:
    """Its mathematics is of the vocabulary, its equations and its sources are known."""
    assert set(cited(name)) <= set(SOURCES)
    sections = writer.sections(name)
    blocks = [block for section in sections for block in section["blocks"]]
    assert all(block["text"] or block["displays"] for block in blocks)
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert text.count("$") % 2 == text.count("`") % 2 == 0
    for code in re.findall(r"`([a-z_]+_(?:time|bytes|flops|memory|parameters|rows|share|load))`", text):
        assert code in FORMULAS


def test_an_unknown_formula_or_mathematics_is_refused(writer: Writer) -> None:
    with pytest.raises(InputError, match="unknown formula 'no_such'"):
        writer.block("= no_such")
    with pytest.raises(ValueError, match="no expression"):
        writer.words("of $no thing$")


def quantity(text: str) -> Any:
    """An introduction's mathematics as an expression of the vocabulary's symbols."""
    spaced = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", text)
    return sympy.sympify(spaced, locals={name: entry.symbol for name, entry in SYMBOLS.items()})


def of(name: str, **values: Any) -> Any:
    """The closed form of a formula, with some of its symbols replaced."""
    expr = strip_units(FORMULAS[name].expression)
    return expr.subs({SYMBOLS[key].symbol: value for key, value in values.items()})


def rate_of(name: str) -> Any:
    return SYMBOLS[name].symbol * SYMBOLS[name.replace("rate", "efficiency").replace("bandwidth", "efficiency")].symbol


h, p, v = (SYMBOLS[name].symbol for name in ("hidden_size", "pp", "vpp"))
STATED = {
    "weights are read while rows compute": (
        "compute",
        ("element_bytes / (memory_bandwidth memory_efficiency)", "2 rows / (matrix_rate matrix_efficiency)"),
        lambda read, computed: read - computed.subs(SYMBOLS["rows"].symbol, of("compute_bound_rows")),
    ),
    "launch and traffic of a stream": (
        "streams",
        ("launch_latency memory_bandwidth memory_efficiency",),
        lambda size: size / rate_of("memory_bandwidth") - of("stream_time", traffic_bytes=0, work_flops=0),
    ),
    "an MLP's FLOPs and those of scores": (
        "attention",
        ("4 hidden_size intermediate_size",),
        lambda flops: (
            flops
            - of(
                "attention_flops", micro_batch=1, sequence=1, heads=1, head_dim=h, context=of("attention_mlp_crossover")
            )
        ),
    ),
    "all products of a GPT's layer and its scores": (
        "attention",
        ("6 hidden_size",),
        lambda context: (
            of("gpt_model_flops", batch=1, num_layers=1, vocab_size=0, sequence=context) - 2 * 72 * context * h**2
        ),
    ),
    "absorbed and expanded scores": (
        "attention",
        ("2 kv_lora_rank", "qk_nope_head_dim + v_head_dim"),
        lambda absorbed, expanded: sympy.expand(
            of("absorbed_attention_flops")
            - of("expanded_attention_flops")
            - (absorbed - expanded) * of("attention_flops", head_dim=sympy.Rational(1, 2))
        ),
    ),
    "experts and their network": (
        "experts",
        ("element_bytes matrix_rate matrix_efficiency / (3 scale_out_bandwidth scale_out_efficiency)",),
        lambda width: (
            2 * of("dispatch_bytes") / rate_of("scale_out_bandwidth")
            - of("device_expert_flops", expert_intermediate_size=width) / rate_of("matrix_rate")
        ),
    ),
    "a state and a cache": (
        "recurrent",
        ("width ssm_state_size state_bytes / (2 key_value_heads head_dim kv_bytes)",),
        lambda context: of("cache_read_bytes", context=context) - of("recurrent_state_bytes"),
    ),
    "a gathered weight and its work": (
        "parallelism",
        ("weight_bytes matrix_rate matrix_efficiency / (2 scale_out_bandwidth scale_out_efficiency)",),
        lambda tokens: (
            of("weights_memory", parameters=1) / rate_of("scale_out_bandwidth")
            - of("matmul_flops", rows=tokens, columns=1, inner=1, groups=1) / rate_of("matrix_rate")
        ),
    ),
    "micro-batches of a small bubble": (
        "pipelines",
        ("(pp - 1) / (vpp x)",),
        lambda count: (
            of("bubble_fraction", micro_batches=count, stages=p).subs(bubble(p, v), (p - 1) / v) - sympy.Symbol("x")
        ),
    ),
    "scores and the rest of a layer": (
        "memory",
        ("34 hidden_size / (5 num_attention_heads)",),
        lambda sequence: (
            of("gpt_layer_bytes", tp=1, activation_bytes=2, mask_bytes=1, sequence=sequence)
            - 2 * 34 * sequence * h * SYMBOLS["micro_batch"].symbol
        ),
    ),
    "a GPT's layer at two bytes": (
        "memory",
        ("sequence micro_batch hidden_size (10 + 24 / tp + 5 num_attention_heads sequence / (hidden_size tp))",),
        lambda size: size - of("gpt_layer_bytes", activation_bytes=2, mask_bytes=1),
    ),
    "a token of a cache": (
        "memory",
        ("2 num_layers num_key_value_heads head_dim element_bytes",),
        lambda size: size - of("kv_cache_bytes", tokens=1),
    ),
    "a balanced step": (
        "generation",
        ("ridge_batch / (1 - context / context_limit)",),
        lambda _: 1 / of("ridge_batch") * (1 - SYMBOLS["context"].symbol / of("context_limit")) - 1 / _balance(),
    ),
    "a memory's power": (
        "technology",
        ("byte_energy cycle_bytes frequency",),
        lambda power: of("powered_bandwidth", power_budget=power) - quantity("cycle_bytes frequency"),
    ),
}
"""What introductions state by hand: the chapter, the mathematics as it is written there, and what must vanish."""


def _balance() -> Any:
    """The balanced batch where there is one."""
    expr = of("balance_batch")
    guard = next(
        iter(expr.atoms(*{type(a) for a in sympy.preorder_traversal(expr) if getattr(a, "operation", "") == "max"}))
    )
    inside = next(arg for arg in guard.args if arg.free_symbols)
    least = next(a for a in sympy.preorder_traversal(inside) if getattr(a, "operation", "") == "min")
    return expr.subs(guard, 1 - next(arg for arg in least.args if arg.free_symbols))


@pytest.mark.parametrize("case", STATED)
def test_what_an_introduction_states_by_hand_follows_from_formulas(case: str) -> None:
    chapter, texts, vanishes = STATED[case]
    written = (FOLDER / f"{chapter}.md").read_text(encoding="utf-8")
    for text in texts:
        assert text in written, "the introduction says something else now"
    known = {name: of(name) for name in ("ridge_batch", "context_limit")}
    given = [quantity(text) if "ridge_batch" not in text else known for text in texts]
    assert sympy.simplify(vanishes(*given)) == 0


def test_the_notation_is_whole(writer: Writer) -> None:
    """Every symbol but the unit of work stands in one group, with the module that adds it."""
    rows = [row.name for group in groups() for row in group.rows]
    assert sorted(rows) == sorted(set(SYMBOLS) - {"flop"})
    assert writer.sections(NOTATION)
    modules = {module_of(name) for name in rows}
    assert {"model", "plan", "device", "efficiency", "formal", "serving", "chip"} <= modules
    assert (module_of("tp"), module_of("launch_latency"), module_of("die_area")) == ("plan", "device", "chip")


def test_indexes_are_whole(writer: Writer) -> None:
    """A symbol's entry has exactly the formulas that have its row, and a source's those that cite it."""
    for row in writer.index():
        users = [one.number for one in writer.entries.values() if row["key"] in {symbol.name for symbol in one.symbols}]
        assert [re.findall(r"\[(.*?)\]", link)[0] for link in row["formulas"]] == sorted(users, key=users.index)
    for found in writer.sources():
        count = sum(formula.source == found.key for formula in FORMULAS.values())
        assert len(writer.source(found)["formulas"]) == count
