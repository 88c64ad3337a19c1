"""What a derivation says: the textbook's forms, terms, relations, and what is wrong with a question."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from support.derive_cases import ALL, PIPELINED, generation, make
from support.effort import some

import symperf as sf
from symperf.common.errors import InputError
from symperf.derive import Derivation, derive
from symperf.derive.forms import values_of
from symperf.derive.monomials import Sum, add, constant, generator, multiply, power, rounded
from symperf.derive.question import quantities
from symperf.derive.relations import relations
from symperf.formulas.language.atoms import less_one
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.derive.derivation import Line


def symbols(names: str) -> list[Any]:
    return [SYMBOLS[name].symbol for name in names.split()]


B, b, L, s, h, a, V, t, p, d, v = symbols(
    "batch micro_batch num_layers sequence hidden_size num_attention_heads vocab_size tp pp dp vpp"
)
F, beta, eta, eta_beta = symbols("matrix_rate memory_bandwidth matrix_efficiency memory_efficiency")


def line_of(derivation: Derivation, monomial: Any) -> Line:
    """The line of a monomial."""
    (found,) = [line for line in derivation.lines if sympy.expand(line.monomial / monomial) == 1]
    return found


def test_gemms_of_the_layers_are_the_textbook_form() -> None:
    """72 B L s h^2 / (t p d F eta) without recomputation: Narayanan et al. 2021, three times 24 B L s h^2."""
    derivation = derive(make(**PIPELINED))
    line = derivation.lines[0]
    assert line.coefficient == 72
    assert sympy.expand(line.monomial * (t * p * d * F * eta) / (B * L * s * h**2)) == 1
    assert 1 < line.rounding < 1.2
    assert line.resource == "compute"
    assert "layer/mlp/up/forward" in line.terms
    assert derivation.lines[0].value == pytest.approx(sum(line.terms.values()), rel=1e-12)


@pytest.mark.parametrize(("recompute", "factor"), [("none", 72), ("selective", 72), ("full", 96)])
def test_recomputation_is_a_third_forward_pass(recompute: str, factor: int) -> None:
    """Full recomputation computes every product of the forward pass again: 96 instead of 72."""
    derivation = derive(make(**{**PIPELINED, "recompute": recompute}))
    assert line_of(derivation, B * L * s * h**2 / (t * p * d * F * eta)).coefficient == factor


def test_model_flops_are_the_paper_s() -> None:
    """72 B L s h^2 (1 + s / (6 h) + V / (12 h L)): Narayanan et al. 2021, equation 3 without recomputation."""
    derivation = derive(make(**PIPELINED), "model_flops")
    expected = 72 * B * L * s * h**2 + 12 * B * L * s**2 * h + 6 * B * s * h * V
    assert sympy.expand(derivation.expr - expected) == 0


def test_activations_are_the_paper_s() -> None:
    """34 s b h L / t with sequence parallelism and selective recomputation: Korthikanti et al. 2022, table 2."""
    derivation = derive(make(**{**PIPELINED, "vpp": 1}), "memory", term="activations")
    assert line_of(derivation, b * L * s * h / t).coefficient == 34


def test_weights_and_states_are_eighteen_bytes() -> None:
    """12 L h^2 parameters of 2 + 4 + 12 bytes on t p devices."""
    derivation = derive(make(**PIPELINED), "memory")
    assert line_of(derivation, L * h**2 / (t * p)).coefficient == 12 * (2 + 4 + 12)


def test_the_bubble_is_p_minus_one_over_v() -> None:
    """The bubble's products are those of (p - 1) / v micro-batches."""
    derivation = derive(make(**PIPELINED), term="pipeline/bubble")
    assert line_of(derivation, b * L * s * h**2 * less_one(p) / (t * p * v * F * eta)).coefficient == 72


def test_decode_reads_the_weights_at_every_step() -> None:
    """2 bytes for each of the weights: attention 4 h^2, gated MLP 3 h f with f = 43 h / 16; no second kernel binds."""
    run = generation("llama-2-7b", "a100-80gb-sxm").bind(split_latency=0.0)
    (generate,) = symbols("generate")
    line = line_of(derive(run, "decode"), L * h**2 * less_one(generate) / (t * beta * eta_beta))
    assert line.coefficient == 2 * (4 + 3 * sympy.Rational(43, 16))
    assert derive(run, "decode").value == pytest.approx(run.value("decode"), rel=1e-12)
    assert derive(run, "time", term="decode").lines == derive(run, "decode").lines


@pytest.mark.parametrize("name", some(ALL))
def test_every_quantity_has_its_value(name: str) -> None:
    """Each is what the compiled program says."""
    run = ALL[name]()
    own = {
        "device_seconds": lambda: run.value("time") * run.value("devices"),
        "energy": lambda: run.energy().total,
        "cost": lambda: run.cost().dollars,
    }
    for of in quantities(run):
        expected = own[of]() if of in own else run.value(of)
        assert derive(run, of).value == pytest.approx(expected, rel=1e-12), of


def test_relations_hold_or_are_not_used() -> None:
    """Sizes are put in terms of others where that is exact, and never where one of them is free or made a number."""
    gpt = make(**PIPELINED)
    found = derive(gpt).relations
    assert {str(symbol): str(expr) for symbol, expr in found.items()} == {
        "head_dim": "hidden_size/num_attention_heads",
        "intermediate_size": "4*hidden_size",
        "num_key_value_heads": "num_attention_heads",
    }
    odd = gpt.bind(intermediate_size=49160)
    assert "intermediate_size" not in {str(symbol) for symbol in derive(odd).relations}
    assert derive(gpt, free=["hidden_size"]).relations == {}
    kept = derive(gpt, free=["hidden_size"], fold=["none"]).relations
    assert {str(symbol) for symbol in kept} == {"num_key_value_heads"}
    assert relations(values_of(gpt), [SYMBOLS["hidden_size"].symbol]).keys() == kept.keys()


def test_folding() -> None:
    """What is asked for becomes a number, nothing else."""
    run = make(**PIPELINED)
    assert eta in derive(run).expr.free_symbols
    assert eta not in derive(run, fold=["efficiencies"]).expr.free_symbols
    (w,) = symbols("activation_bytes")
    assert w in derive(run, fold=["efficiencies"]).expr.free_symbols
    assert not derive(run, fold=["all"]).expr.free_symbols
    assert derive(run, fold=["tp"]).folded == ("tp",)
    numbers = derive(run, free=["memory_bandwidth"], fold=["none"])
    assert len(numbers.expr.free_symbols) > 10


def test_dropped_lines_are_told() -> None:
    """Their number and total; the largest line is kept whatever is asked."""
    run = make(**PIPELINED)
    assert derive(run, below=0).dropped == ()
    alone = derive(run, below=1)
    assert len(alone.kept) == 1
    assert alone.dropped_share == pytest.approx(1 - alone.kept[0].share)
    assert alone.dropped_value == pytest.approx(run.value("time") - alone.kept[0].value)


def test_parts_of_trees() -> None:
    """A folder's part is its share of the quantity; parts of parts are parts."""
    run = make(**PIPELINED)
    part = run.time["layer"]["mlp"]
    assert part.part == "layer/mlp"
    assert part.value() == run.time["layer/mlp"].value() == pytest.approx(derive(run, term="layer/mlp").value)
    bound = {symbol: sympy.Float(value, 25) for symbol, value in run.bindings.items()}
    assert float(part.expr.xreplace(bound)) == pytest.approx(part.value(), rel=1e-12)
    assert sum(
        run.memory[top].value() for top in ("weights", "gradients", "optimizer", "activations", "workspace")
    ) == (pytest.approx(run.value("memory"), rel=1e-12))
    assert "layer/mlp" in repr(part)
    assert str(part).splitlines()[0].startswith("time of layer/mlp = ")
    assert " = " not in str(run.free("batch").time["layer"]).splitlines()[0]


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        ({"of": "tme"}, "unknown quantity 'tme'.*did you mean time"),
        ({"of": ""}, "unknown quantity ''"),
        ({"term": "layer/mpl"}, "no term 'layer/mpl'; did you mean layer/mlp"),
        ({"term": "up"}, "did you mean layer/mlp/up"),
        ({"term": "zzz"}, "expected one under layer or "),
        ({"term": ""}, "no term ''"),
        ({"of": "memory", "term": "weight"}, "memory has no term 'weight'; did you mean weights"),
        ({"of": "mfu", "term": "layer"}, "mfu has no terms"),
        ({"free": ["micro_bach"]}, "no symbol 'micro_bach'; did you mean micro_batch"),
        ({"fold": ["format"]}, "found 'format'.*did you mean formats"),
        ({"below": -0.1}, "expected a share from 0 to 1"),
        ({"below": float("nan")}, "expected a share from 0 to 1"),
        ({"below": "x"}, "expected a share from 0 to 1"),
        ({"below": True}, "expected a share from 0 to 1"),
    ],
)
def test_bad_questions(question: dict[str, Any], complaint: str) -> None:
    """Each is told in one line, with the nearest."""
    with pytest.raises(sf.InputError, match=complaint) as caught:
        derive(make(**PIPELINED), **question)
    assert "\n" not in str(caught.value)


def test_bad_parts() -> None:
    """Unknown paths of a tree, and paths outside of a part."""
    run = make(**PIPELINED)
    for path, complaint in (("layer/mpl", "did you mean layer/mlp"), ("", "no term ''"), (3, "expected a path")):
        with pytest.raises(sf.InputError, match=complaint):
            run.time[path]  # type: ignore[index]
    with pytest.raises(sf.InputError, match="not part of layer"):
        run.time["layer"]["head"]
    with pytest.raises(sf.InputError, match="needs a decode step"):
        derive(generation("llama-2-7b", "a100-80gb-sxm", generate=1), "time_per_token")


def test_sums_of_monomials() -> None:
    """Sums add, multiply and are raised like the expressions that they stand for."""
    x, y = sympy.symbols("x y", positive=True)
    one = add(generator(x), generator(y))
    square = multiply(one, one)
    assert square == power(one, Fraction(2))
    assert len(square) == 3
    assert power(one, Fraction(-1)) is None
    assert power(generator(x), Fraction(1, 2)) == generator(x, Fraction(1, 2))
    assert add(one, multiply(constant(-1), one)) == {}
    assert constant(0) == {}


def test_a_coefficient_that_is_rounding_alone_has_no_factor() -> None:
    """Where parts cancel but for what rounding adds, or change sign by it, the exact coefficient stands by itself."""
    part: Sum = {frozenset(): (Fraction(3), Fraction(4))}
    assert rounded((Fraction(6), Fraction(4))) == (4, 1.5)
    for smooth in (Fraction(-4), Fraction(-3)):
        (pair,) = add(part, {frozenset(): (Fraction(-4), smooth)}).values()
        assert rounded(pair) == (-1, 1.0)
    plan = sf.Plan(tp=8)
    scout = sf.inference("llama-4-scout", "h100-sxm", plan, batch=8, prompt=200, generate=100)
    found = derive(scout)
    assert found.value == pytest.approx(scout.value("time"), rel=1e-9)
    assert all(line.rounding > 0 for line in found.lines)


def test_texts() -> None:
    """A derivation prints itself, briefly in a prompt, as LaTeX in a notebook."""
    run = make(**PIPELINED)
    derivation = derive(run)
    assert str(derivation).startswith("T = ")
    assert repr(derivation).startswith("Derivation(time, ")
    assert derivation._repr_latex_().startswith("$\\begin{aligned}")
    assert "\\underbrace" in derivation.fragment()
    for width in (44, 60, 78, 120):
        assert max(map(len, derivation.unicode(width).splitlines())) <= width
        assert max(map(len, derive(run, "mfu").unicode(width).splitlines())) <= width


def test_a_derivation_shows_itself_in_a_notebook_and_as_a_picture(tmp_path: Path) -> None:
    """A table with every line that is shown, and a picture of the shares; another suffix is one line."""
    derivation = derive(make(**PIPELINED))
    text = derivation._repr_html_()
    assert text.count("<tr>") == 1 + len(derivation.kept) + bool(derivation.dropped)
    derivation.plot(tmp_path / "lines.png")
    assert (tmp_path / "lines.png").stat().st_size > 1000
    with pytest.raises(InputError, match="expected a file that ends in"):
        derivation.plot(tmp_path / "lines.gif")
