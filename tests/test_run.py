"""`Run`: the Python contract. Values, bindings, closed forms, attribution, and a start that needs no SymPy."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.formulas.symbols import SYMBOLS
from symperf.report.training import as_json
from symperf.run import ALIASES
from symperf.schedule import Op
from symperf.step import BUBBLE

ROOT = Path(__file__).parents[1]
NUMBERS = (
    "time_s",
    "tokens_per_s",
    "tokens_per_s_per_device",
    "tflops_per_device",
    "mfu",
    "hfu",
    "devices",
    "capacity_bytes",
)
"""Keys of the contract's JSON object that hold one number."""
KEYS = {*NUMBERS, "memory_bytes", "fits", "shares", "breakdown", "warnings"}


def make(model: str = "gpt3-175b", system: str = "a100-80gb-sxm", batch: int = 64, **plan: Any) -> sf.Run:
    """A run of 2048 tokens a sequence."""
    return sf.training(sf.Model.load(model), sf.System.load(system), sf.Plan(**plan), batch=batch, sequence=2048)


PIPELINED = {"tp": 8, "pp": 8, "vpp": 3, "recompute": "selective", "sequence_parallel": True}
RUNS = {
    "gpt": lambda: make(**PIPELINED),
    "llama": lambda: make("llama-2-70b", "h100-sxm", 512, tp=8, pp=4, dp=16, zero=1, overlap_dp=0.7, overlap_tp=0.4),
    "one device": lambda: make("gpt-j-6b", "h100-sxm", 2, micro_batch=2, recompute="full"),
    "no tiles": lambda: make("llama-2-7b", "tpu-v5p", 16, dp=8),
}
each_run = pytest.mark.parametrize("name", RUNS)


@pytest.fixture(scope="module")
def run() -> sf.Run:
    """The 175B run of Korthikanti et al. 2022, which several tests read."""
    return make(**PIPELINED)


# Values -------------------------------------------------------------------------------------------------------


@each_run
def test_the_json_object_of_the_contract(name: str) -> None:
    """Every key is there, numbers equal `value` of the same name, and it is strict JSON."""
    answer = RUNS[name]()
    found = as_json(answer)
    assert set(found) >= KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for key in NUMBERS:
        assert found[key] == answer.value(key), key
    assert set(found["memory_bytes"]) == {"weights", "gradients", "optimizer", "activations", "workspace", "total"}
    parts = [size for part, size in found["memory_bytes"].items() if part != "total"]
    assert sum(parts) == pytest.approx(found["memory_bytes"]["total"], rel=1e-12)
    assert found["fits"] is (found["memory_bytes"]["total"] <= found["capacity_bytes"])
    assert all({"name", "time_s", "share", "bound", "flops", "bytes"} <= set(row) for row in found["breakdown"])
    assert sum(found["shares"].values()) == pytest.approx(1, rel=1e-12)
    assert sum(row["time_s"] for row in found["breakdown"]) == pytest.approx(found["time_s"], rel=1e-12)


def test_aliases_and_derived_values(run: sf.Run) -> None:
    """Other names of a value give that value, and values agree with one another."""
    for alias, name in ALIASES.items():
        assert run.value(alias) == run.value(name)
    assert run.value("time_s") == run.value("time")
    assert run.value("tokens_per_second") == run.value("tokens_per_s")
    assert run.value("tokens_per_s") == pytest.approx(64 * 2048 / run.value("time"), rel=1e-12)
    assert run.value("tokens_per_s_per_device") * run.value("devices") == pytest.approx(run.value("tokens_per_s"))
    assert run.value("mfu") == pytest.approx(run.value("tflops_per_device") / 312, rel=1e-12)
    assert run.value("hfu") > run.value("mfu")
    assert run.value("devices") == 64
    assert run.value("capacity_bytes") == 80e9
    assert run.value("memory") == pytest.approx(sum(run.memory_terms().values()), rel=1e-12)


def test_a_term_has_a_value(run: sf.Run) -> None:
    """The seconds of one execution of a term, by its path."""
    for row in run.table():
        assert run.value(row.name) == row.each_s


@pytest.mark.parametrize(("wrong", "near"), [("tme", "time"), ("mfuu", "mfu"), ("memory_byte", "memory_bytes")])
def test_an_unknown_value_is_an_input_error(run: sf.Run, wrong: str, near: str) -> None:
    """The line names what was asked for and the nearest that there is."""
    with pytest.raises(sf.InputError, match=rf"value: unknown quantity '{wrong}'.*{near}"):
        run.value(wrong)


def test_values_may_be_given(run: sf.Run) -> None:
    """`training` takes values of symbols by name: the device's, the model's, defaults."""
    other = sf.training(
        run.base_model,
        run.base_system,
        run.plan,
        batch=64,
        sequence=2048,
        memory_bandwidth=4e12,
        hidden_size=24576,
        workspace_bytes=1e9,
    )
    assert other.bound["memory_bandwidth"][0] == 4e12
    assert other.model.sizes["hidden_size"] == 24576
    assert other.memory_terms()["workspace/framework"] == 1e9
    assert run.memory_terms()["workspace/framework"] == 0
    assert "set by the user" in other.bound["workspace_bytes"][1]


# Other runs ---------------------------------------------------------------------------------------------------


def test_bind_a_plan_field(run: sf.Run) -> None:
    """A new run under the other plan; the old one is unchanged."""
    other = run.bind(tp=4, sequence_parallel=False)
    assert (other.plan.tp, other.plan.sequence_parallel) == (4, False)
    assert (run.plan.tp, run.plan.sequence_parallel) == (8, True)
    assert other.value("time") == make(**(PIPELINED | {"tp": 4, "sequence_parallel": False})).value("time")
    assert other.value("devices") == 32


def test_bind_a_figure_of_the_system(run: sf.Run) -> None:
    """A number in SI units, or a text with a unit; it is the figure that the run uses."""
    twice, text = run.bind(memory_bandwidth=4.078e12), run.bind(memory_bandwidth="4078 GB/s")
    assert twice.value("time") == text.value("time") < run.value("time")
    assert twice.compiled is run.compiled
    assert run.bind(matrix_rate=624e12).value("time") < run.value("time")


def test_bind_a_size_batch_and_sequence(run: sf.Run) -> None:
    """Sizes of the model and the work are symbols too; an earlier value is kept."""
    assert run.bind(num_layers=192).value("time") > run.value("time")
    assert run.bind(batch=128).value("tokens") == 128 * 2048
    assert run.bind(sequence=1024).value("tokens") == 64 * 1024
    both = run.bind(num_layers=192).bind(vocab_size=100_000)
    assert (both.model.sizes["num_layers"], both.model.sizes["vocab_size"]) == (192, 100_000)
    assert run.bind().value("time") == run.value("time")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"micro_bach": 2}, "unknown symbol 'micro_bach'.*micro_batch"),
        ({"memory_bandwith": 2e12}, "unknown symbol 'memory_bandwith'.*memory_bandwidth"),
        ({"tp": 0}, "tp: found 0"),
        ({"tp": 7}, "tp: 7 does not divide the 96 attention heads"),
        ({"batch": 63}, "schedule: interleaved needs micro-batches divisible by pp"),
        ({"micro_batch": 3}, "batch: 64 sequences are not divisible"),
        ({"hidden_size": -1}, "hidden_size: found -1"),
        ({"memory_bandwidth": -1}, "memory_bandwidth: found -1"),
        ({"memory_bandwidth": float("nan")}, "memory_bandwidth: found nan"),
        ({"weight_bytes": 0}, "weight_bytes: found 0"),
        ({"recompute": "som"}, "recompute: found 'som'"),
    ],
)
def test_what_cannot_be_bound_is_an_input_error(run: sf.Run, values: dict[str, Any], message: str) -> None:
    """An unknown name with the nearest, or a value out of range, in one line."""
    with pytest.raises(sf.InputError, match=message) as caught:
        run.bind(**values)
    assert "\n" not in str(caught.value)


def test_free(run: sf.Run) -> None:
    """A free symbol has no binding; the form keeps it; values are refused until it is bound again."""
    free = run.free("micro_batch", "memory_bandwidth")
    names = {str(symbol) for symbol in free.bindings}
    assert {str(symbol) for symbol in run.bindings} - names == {"micro_batch", "memory_bandwidth"}
    assert free.time.expr == run.time.expr
    left = free.time.expr.xreplace(free.bindings).free_symbols
    assert {str(symbol) for symbol in left} == {"micro_batch", "memory_bandwidth"}
    for refused in (lambda: free.value("time"), free.table, free.shares, free.sensitivity):
        with pytest.raises(sf.InputError, match="memory_bandwidth, micro_batch"):
            refused()
    half = free.bind(micro_batch=1)
    with pytest.raises(sf.InputError, match=r"no value: memory_bandwidth;"):
        half.value("time")
    assert half.bind(memory_bandwidth=2.039e12).value("time") == run.value("time")
    assert "free" in free.latex()


def test_an_unknown_symbol_cannot_be_freed(run: sf.Run) -> None:
    """The line names the nearest."""
    with pytest.raises(sf.InputError, match=r"no symbol 'micro_bach'.*micro_batch"):
        run.free("micro_bach")


# Closed forms -------------------------------------------------------------------------------------------------


@each_run
def test_closed_forms_equal_values(name: str) -> None:
    """Time and memory as SymPy expressions, with the bindings put in, are the numbers to 1e-12."""
    answer = RUNS[name]()
    assert all(isinstance(symbol, sympy.Symbol) for symbol in answer.bindings)
    assert all(SYMBOLS[symbol.name].symbol == symbol for symbol in answer.bindings)
    for tree, key in ((answer.time, "time"), (answer.memory, "memory")):
        assert tree.expr.free_symbols <= set(answer.bindings)
        number = tree.expr.xreplace({s: sympy.Rational(v) for s, v in answer.bindings.items()})
        assert float(number.evalf(30)) == pytest.approx(answer.value(key), rel=1e-12)


@each_run
def test_trees_name_their_terms(name: str) -> None:
    """The form over named terms, with each term's form put in, is the whole form; each term has its value."""
    answer = RUNS[name]()
    bindings = {s: sympy.Float(v, 30) for s, v in answer.bindings.items()}
    for tree, prefix in ((answer.time, ""), (answer.memory, "memory/")):
        terms = {sympy.Symbol(path, nonnegative=True): expr.xreplace(bindings) for path, expr in tree.terms.items()}
        whole = tree.formula.xreplace(bindings).xreplace(terms)
        assert float(whole) == pytest.approx(answer.value(tree.name), rel=1e-12)
        for path, expr in tree.terms.items():
            assert float(expr.xreplace(bindings)) == pytest.approx(answer.value(prefix + path), rel=1e-12), path


def test_trees_print(run: sf.Run) -> None:
    """As an indented tree with values; briefly in a prompt; as LaTeX in a notebook."""
    text = str(run.time)
    assert text.splitlines()[0].startswith("time = ")
    assert "  layer" in text
    assert "bubble" in text
    assert str(run.memory).splitlines()[0].startswith("memory = ")
    assert "print it" in repr(run.time)
    assert run.time._repr_latex_().startswith("$")
    assert " = " not in str(run.free("batch").time).splitlines()[0]
    assert "gpt3-175b on a100-80gb-sxm" in repr(run)


def test_latex(run: sf.Run) -> None:
    """An align environment of all terms and a table of every symbol, balanced and with values."""
    text = run.latex()
    for environment in ("align*", "tabular"):
        assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}") == 1
    assert text.count("{") == text.count("}")
    align, table = text.split(r"\end{align*}")
    assert align.count("&=") == 1 + len(run.time.terms)
    assert table.count(r" \\") == 1 + len(run.time.expr.free_symbols)
    for symbol in run.time.expr.free_symbols:
        assert f"${SYMBOLS[symbol.name].glyph}$ &" in table
    assert r"$2.039 \cdot 10^{12}$" in table


# Attribution --------------------------------------------------------------------------------------------------


@each_run
def test_elasticities_and_shares_agree(name: str) -> None:
    """Elasticities of latencies less those of rates sum to one, and by resource they are the shares."""
    answer = RUNS[name]()
    found = answer.sensitivity()
    assert set(found) <= {str(symbol) for symbol in answer.bindings}
    by_resource = dict.fromkeys(answer.shares(), 0.0)
    for symbol, elasticity in found.items():
        resource = SYMBOLS[symbol].resource
        if resource is not None:
            by_resource[resource] += elasticity if symbol.endswith("_latency") else -elasticity
    assert sum(by_resource.values()) == pytest.approx(1, rel=1e-12)
    assert by_resource == pytest.approx(answer.shares(), rel=1e-12, abs=1e-15)
    assert all(0 <= share <= 1 + 1e-12 for share in answer.shares().values())


@pytest.mark.parametrize("symbol", ["matrix_rate", "memory_bandwidth", "scale_up_bandwidth", "launch_latency"])
def test_sensitivity_is_the_derivative(run: sf.Run, symbol: str) -> None:
    """An elasticity is what a small change does, in logarithms."""
    step = 1e-6
    up, down = (run.bind(**{symbol: run.bound[symbol][0] * (1 + s)}).value("time") for s in (step, -step))
    slope = (up - down) / (2 * step) / run.value("time")
    assert run.sensitivity()[symbol] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_table_rows(run: sf.Run) -> None:
    """Every term of the step once, in order, with what it does and what binds it."""
    table = run.table()
    assert [row.name for row in table] == list(run.time.terms)
    rows = {row.name: row for row in table}
    layers_of_a_device = 96 / 8 * 64
    qkv = rows["layer/attention/qkv/forward"]
    assert qkv.count == layers_of_a_device
    assert qkv.flops == 2 * 2048 * 12288 * 3 * 12288 / 8 * layers_of_a_device
    assert qkv.bound == "compute"
    assert qkv.share == pytest.approx(qkv.time_s / run.value("time"), rel=1e-15)
    assert rows["layer/mlp/reduce/forward"].bound == "scale_up"
    assert rows["layer/mlp/norm/forward"].bound == "memory"
    assert rows["pipeline/send/forward"].bound == "scale_out"
    idle = rows[BUBBLE]
    assert (idle.flops, idle.bytes, idle.bound) == (0, 0, None)
    assert idle.time_s == pytest.approx(idle.each_s, rel=1e-12)
    resources = {*run.shares(), None}
    assert {row.bound for row in table} <= resources


def test_hidden_transfers_take_no_time(run: sf.Run) -> None:
    """A transfer that hides behind its product is responsible for nothing; uncovered, for all of itself."""
    path = "layer/mlp/up/gather/backward"
    hidden, shown = ({row.name: row for row in run.bind(overlap_tp=overlap).table()}[path] for overlap in (1.0, 0.0))
    assert hidden.time_s == 0
    assert shown.time_s >= shown.count * shown.each_s * (1 - 1e-12) > 0


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_values_hold_over_plans(tp: int, pp: int, dp: int, micro_batch: int) -> None:
    """Any plan that is accepted has finite, positive answers that add up."""
    answer = make("llama-2-7b", "h100-sxm", micro_batch * dp * 8, tp=tp, pp=pp, dp=dp, micro_batch=micro_batch)
    assert 0 < answer.value("mfu") <= answer.value("hfu") < 1
    assert answer.value("devices") == tp * pp * dp
    assert sum(answer.shares().values()) == pytest.approx(1, rel=1e-12)
    assert sum(row.time_s for row in answer.table()) == pytest.approx(answer.value("time"), rel=1e-12)
    idle = {row.name: row for row in answer.table()}[BUBBLE]
    assert (idle.time_s > 0) is (pp > 1)


def test_terms_of_the_program_are_those_of_the_tree(run: sf.Run) -> None:
    """What the compiled structure lists is what the schedule tree holds."""
    from symperf.build import step_tree
    from symperf.schedule import terms

    named = terms(step_tree(run.structure))
    assert [(t.path, t.idle) for t in run.compiled.terms] == [(p, not isinstance(t, Op)) for p, t in named.items()]


# Cache and processes ------------------------------------------------------------------------------------------


def _python(code: str, folder: Path, **environment: str) -> str:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"PYTHONPATH": str(ROOT), "SYMPERF_CACHE": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty private cache folder."""
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


PREDICTION = """
import json, sys
import symperf as sf
run = sf.training(sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8, micro_batch=4), batch=4,
                  sequence=2048)
run.table(), run.shares(), run.sensitivity(), run.memory_terms(), run.fits
print(json.dumps([run.value("time"), run.value("memory"), sorted({"sympy", "numpy", "numba"} & sys.modules.keys())]))
"""


def test_a_warm_prediction_imports_nothing_heavy(folder: Path) -> None:
    """The first process builds with SymPy; the second reads what it kept, without SymPy, NumPy or Numba."""
    cold, warm = json.loads(_python(PREDICTION, folder)), json.loads(_python(PREDICTION, folder))
    assert cold[:2] == warm[:2]
    assert "sympy" in cold[2], "or the test shows nothing"
    assert warm[2] == []


def test_a_damaged_cache_is_built_again(folder: Path) -> None:
    """A file that is cut short changes no answer, and is whole again afterwards."""
    cold = json.loads(_python(PREDICTION, folder))
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    assert json.loads(_python(PREDICTION, folder)) == cold
    assert path.read_bytes() == whole


HELP = """
import sys
from symperf.cli import main
try:
    main(sys.argv[1:] or ["--help"])
except SystemExit as done:
    assert not done.code, done.code
heavy = {"sympy", "numpy", "numba"} & sys.modules.keys()
assert not heavy, heavy
"""


def test_help_imports_nothing_heavy(folder: Path) -> None:
    """`symperf --help` is quick to start."""
    assert "train" in _python(HELP, folder)


PROGRAM = """
import hashlib, json
import symperf as sf
run = sf.training(sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(tp=2, pp=2, dp=2, zero=1), batch=8,
                  sequence=2048)
print(run.structure.key())
print(run.compiled.program.text())
print(json.dumps(run.compiled.resources), run.latex())
"""


def test_programs_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Two processes with unlike hash seeds and no common cache build the same program and the same LaTeX."""
    texts = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir(mode=0o700)
        texts.append(_python(PROGRAM, tmp_path / seed, PYTHONHASHSEED=seed))
    assert texts[0] == texts[1]


def test_a_run_without_a_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be kept, answers are the same."""
    from symperf.compiled import _compiled

    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SYMPERF_CACHE", str(tmp_path / "file"))
    expected = make("gpt-22b", batch=4, tp=8, micro_batch=4).value("time")
    _compiled.cache_clear()
    assert make("gpt-22b", batch=4, tp=8, micro_batch=4).value("time") == expected


def test_rows_are_values(run: sf.Run) -> None:
    """A row cannot be changed behind the run's back."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.table()[0].time_s = 0.0  # type: ignore[misc]
