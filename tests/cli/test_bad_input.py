"""The command line with bad input: exit status 2 and one clear line, whatever the user writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
TOML = """name = "mine"
matrix_rate = { bf16 = "500 TFLOP/s" }
memory_bandwidth = "3 TB/s"
memory_capacity = "96 GB"
"""
HOSTILE = "__import__('pathlib').Path('pwned').touch()"
M, S, WORK = ["gpt-22b"], ["-s", "a100-80gb-sxm"], ["--batch", "8", "--sequence", "2048"]
RANGE = "expected a whole number from 1 to 1000000000"
MOST = "expected a whole number of at most 1000000000"


class Case(NamedTuple):
    name: str
    argv: list[str]
    says: list[str]
    files: dict[str, str | bytes]


def case(name: str, argv: list[str], *says: str) -> Case:
    return Case(name, argv, list(says), {})


def train(name: str, flags: str | list[str], *says: str) -> Case:
    return case(name, ["train", *M, *S, *WORK, *(flags.split() if isinstance(flags, str) else flags)], *says)


def setting(name: str, value: str, *says: str) -> Case:
    return train(f"set: {name}", ["--set", value], *says)


def config(name: str, text: str | bytes | dict[str, Any], *says: str) -> Case:
    body = json.dumps(LLAMA | text) if isinstance(text, dict) else text
    return Case(f"config: {name}", ["train", "m.json", *S, *WORK], ["m.json", *says], {"m.json": body})


def toml(name: str, text: str | bytes, *says: str, flags: str = "") -> Case:
    return Case(f"toml: {name}", ["train", *M, "-s", "s.toml", *WORK, *flags.split()], list(says), {"s.toml": text})


CASES = [
    # verbs, flags and what goes with them
    case("no verb", [], "command line", "VERB"),
    case("empty verb", [""], "command line", "unknown verb ''", "train or infer"),
    case("near verb", ["trian"], "unknown verb 'trian'", "did you mean train?"),
    case("verb of several lines", ["a\nb"], r"unknown verb 'a\nb'"),
    case("hostile verb", [HOSTILE], "unknown verb"),
    case("flag before the verb", ["--json", "list", "models"], "'--json' before the verb", "--version"),
    case("near flag", ["train", *M, *S, "--bacth", "8", "--sequence", "8"], "train", "'--bacth'", "mean --batch"),
    case("flag with an underscore", ["train", *M, *S, *WORK, "--micro_batch", "2"], "did you mean --micro-batch"),
    case("flag with a value", ["inspect", *M, "--bach=4"], "inspect", "'--bach'", "did you mean --batch"),
    case("unknown short flag", ["inspect", *M, "-x"], "inspect", "unknown argument '-x'"),
    case("abbreviated flag", ["train", *M, *S, *WORK, "--recomp", "full"], "'--recomp'", "did you mean --recompute"),
    case("flag of another verb", ["inspect", *M, "--tp", "8"], "inspect", "unknown argument '--tp'"),
    case("offload of nothing", ["train", *M, *S, *WORK, "--offload"], "--offload: expected one argument"),
    case("too many arguments", ["inspect", *M, "gpt2"], "inspect", "unknown argument 'gpt2'"),
    case("flag without a value", ["train", *M, *S, *WORK, "--tp"], "train", "--tp", "expected one argument"),
    case("value of two hyphens", ["train", *M, *S, *WORK, "--set=--"], "--set", "'--'", "expected a value"),
    case("value for a switch", ["inspect", *M, "--json=1"], "inspect", "--json", "'1'"),
    case("train without anything", ["train"], "train", "model", "--system", "--batch"),
    case("train texts without a length", ["train", *M, *S, "--batch", "4"], "train", "required", "--sequence"),
    case("train without a system", ["train", *M, *WORK], "train", "--system"),
    case("inspect without a model", ["inspect"], "inspect", "model"),
    case("list without a kind", ["list"], "list", "WHAT"),
    case("list of a near kind", ["list", "modles"], "list", "'modles'", "symbols or formulas", "did you mean models?"),
    case("list of models on a system", ["list", "models", "-s", "h100-sxm"], "list", "-s", "symbols", "models"),
    case("list on an unknown system", ["list", "symbols", "-s", "h100-sxn"], "'h100-sxn'", "did you mean h100-sxm"),
    # models
    case("empty model", ["inspect", ""], "model is an empty text", "catalogue name", "config.json"),
    case("near model", ["inspect", "llama-2-7c"], "llama-2-7c", "no such file", "did you mean llama-2-7b"),
    case("hostile model", ["inspect", HOSTILE], "no such file and no model of the catalogue"),
    case("model of several lines", ["inspect", "a\nb"], r"'a\nb'", "no such file"),
    case("model with a null", ["inspect", "a\0b"], r"'a\x00b'"),
    case("model that is no Unicode", ["inspect", "\udcff"], r"\udcff", "no such file"),
    case("model of 10,000 letters", ["inspect", "x" * 10_000], "xxx...xxx"),
    case("missing file", ["inspect", "none.json"], "none.json: no such file"),
    case("folder without a config", ["inspect", "."], "the folder holds no config.json"),
    case("device", ["inspect", os.devnull], "expected a JSON file"),
    config("empty", "", "line 1, column 1: invalid JSON"),
    config("malformed", '{"model_type": "llama",\n "hidden_size": }', "line 2", "invalid JSON"),
    config("not UTF-8", b'{"a": "\xe9"}', "byte 7", "UTF-8"),
    config("list", "[1]", "[1]", "expected an object"),
    config("key twice", '{"a": 1, "a": 2}', "'a' comes twice"),
    config("nested deeply", "[" * 100_000, "invalid JSON"),
    config("no architecture", '{"hidden_size": 64}', "model_type"),
    config("near architecture", {"model_type": "lama"}, "unknown model_type 'lama'", "did you mean llama"),
    config("architecture that comes later", {"model_type": "longcat_flash"}, "'longcat_flash'", "not supported yet"),
    config(
        "missing size", json.dumps({k: v for k, v in LLAMA.items() if k != "hidden_size"}), "hidden_size is missing"
    ),
    config("text for a size", {"hidden_size": "64"}, "hidden_size is '64'", "positive integer"),
    config("zero", {"vocab_size": 0}, "vocab_size is 0", "positive integer"),
    config("negative", {"num_hidden_layers": -2}, "num_hidden_layers is -2", "positive integer"),
    config("NaN", {"intermediate_size": float("nan")}, "intermediate_size is nan", "positive integer"),
    config("infinite", {"intermediate_size": float("inf")}, "intermediate_size is inf", "positive integer"),
    config("absurd", {"vocab_size": 10**30}, "vocab_size is 1000", "at most 1e+12"),
    config("hostile", {"hidden_size": HOSTILE}, "hidden_size is", "positive integer"),
    config("heads", {"num_attention_heads": 5}, "64", "5 attention heads"),
    config("key-value heads", {"num_key_value_heads": 3}, "4 attention heads", "3 key-value heads"),
    # systems
    case("empty system", ["train", *M, "-s", "", *WORK], "system", "''", "known: a10"),
    case("near system", ["train", *M, "-s", "h100-smx", *WORK], "'h100-smx'", "did you mean h100-sxm"),
    case("hostile system", ["train", *M, "-s", HOSTILE, *WORK], "no system", "known: a10"),
    case("missing system file", ["train", *M, "-s", "none.toml", *WORK], "none.toml: no such file"),
    toml("malformed", "memory_bandwidth 5", "s.toml", "not valid TOML", "line 1"),
    toml("not UTF-8", b'title = "\xe9"', "s.toml", "byte 9", "UTF-8"),
    toml("wrong unit", TOML.replace("TB/s", "TB"), "s.toml: memory_bandwidth", "'3 TB'", "one of a size"),
    toml("unknown unit", TOML.replace("TB/s", "TB/h"), "s.toml: memory_bandwidth", "'TB/h' is unknown"),
    toml("no unit", TOML.replace('"3 TB/s"', "3000"), "s.toml: memory_bandwidth", "is the unit missing?"),
    toml("wrong type", TOML.replace('"3 TB/s"', "[3]"), "s.toml: memory_bandwidth", "[3] of type list"),
    toml("boolean", TOML.replace('"3 TB/s"', "true"), "s.toml: memory_bandwidth", "of type bool"),
    toml("NaN", TOML.replace('"3 TB/s"', "nan"), "s.toml: memory_bandwidth", "nan", "finite"),
    toml("negative", TOML.replace("3 TB/s", "-3 TB/s"), "s.toml: memory_bandwidth", "above zero"),
    toml("absurd", TOML.replace("3 TB/s", "9e999 TB/s"), "s.toml: memory_bandwidth", "beyond the range"),
    toml("hostile", TOML.replace("3 TB/s", HOSTILE), "s.toml: memory_bandwidth", "plain number"),
    toml("near key", TOML + "memory_bandwith = 1", "s.toml", "'memory_bandwith'", "did you mean memory_bandwidth"),
    toml("near base", 'base = "h100-sxn"', "s.toml: base", "'h100-sxn'", "did you mean h100-sxm"),
    toml("own base", 'base = "s.toml"', "s.toml: base", "cycle"),
    toml("no capacity", TOML.replace("memory_capacity", "#"), "s.toml: missing memory_capacity"),
    toml("no network", TOML, "system mine", "no network", "scale_up_bandwidth", "2 devices", flags="--tp 2"),
    toml("no such precision", TOML, "system mine", "'fp8'", "it has bf16", flags="--precision fp8"),
    toml("name of two lines", TOML.replace("mine", "a\\nb"), r"system a\nb", "no network", flags="--tp 2"),
    case("one tier", ["train", *M, "-s", "l40s", *WORK, "--set", "batch=1024", "--dp", "1024"], "scale-out", "8"),
    case("no fp8", ["train", *M, "-s", "v100-32gb-sxm", *WORK, "--precision", "fp8"], "'fp8'", "it has fp32, fp16"),
    # values of flags
    *(
        train(f"{flag} {value or 'nothing'}"[:40], [f"--{flag}={value}"], flag.replace("-", "_"), found, RANGE)
        for flag in ("tp", "pp", "dp", "vpp", "micro-batch", "batch", "sequence")
        for value, found in (("0", "found 0"), ("-1", "found -1"), ("1000000001", "1000000001"))
    ),
    *(
        train(
            f"--{flag} of {digits} digits", [f"--{flag}={'9' * digits}"], f"argument --{flag}: found '99", "99...", MOST
        )
        for flag in ("tp", "pp", "dp", "vpp", "micro-batch", "batch", "sequence")
        for digits in (400, 5000)
    ),
    train("a huge number below zero", [f"--tp=-{'9' * 400}"], "argument --tp: found '-99", "expected a whole number"),
    *(
        train(f"--tp {name}", [f"--tp={value}"], "train", "--tp", "found", "expected a whole number")
        for name, value in {
            "empty": "",
            "text": "eight",
            "fraction": "1.5",
            "NaN": "nan",
            "infinite": "inf",
            "power": "1e3",
            "boolean": "true",
            "underscore": "1_0",
            "wide digit": "１",
            "4999 digits": "9" * 4999,
            "hostile": HOSTILE,
        }.items()
    ),
    *(
        train(f"{flag} {value}", [f"--{flag}={value}"], flag.replace("-", "_"), "expected a fraction from 0 to 1")
        for flag in ("overlap-tp", "overlap-dp")
        for value in ("nan", "inf", "-0.1", "1.1", "1e400")
    ),
    train("overlap of text", "--overlap-tp half", "train", "--overlap-tp", "'half'", "expected a number"),
    train("near recompute", "--recompute ful", "recompute", "'ful'", "none or selective or full", "did you mean full?"),
    train("schedule in capitals", "--schedule 1F1B", "schedule", "'1F1B'", "did you mean 1f1b?"),
    train("near schedule", "--schedule dual-pipe", "schedule", "'dual-pipe'", "did you mean dualpipe?"),
    train("precision that the device lacks", "--precision fp8", "matrix_rate", "'fp8'", "it has fp32, tf32, fp16"),
    train("near attention", "--attention flsh", "attention", "'flsh'", "did you mean flash?"),
    train("empty attention", ["--attention", ""], "attention", "found ''", "eager or flash"),
    train("zero stage that is none", "--zero 4", "zero", "found 4", "expected 0, 1, 2 or 3"),
    train("negative zero stage", "--zero=-1", "zero", "found -1", "expected 0, 1, 2 or 3"),
    # plans that cannot run
    train("heads by tp", "--tp 3", "tp", "3 does not divide the 64 attention heads of gpt-22b"),
    train("intermediate size by tp", "--tp 8 --set intermediate_size=100", "8", "the intermediate size 100"),
    train("layers by pp", "--pp 5", "pp x vpp", "5 does not divide the 48 layers of gpt-22b"),
    train("layers by pp and vpp", "--pp 4 --vpp 5", "pp x vpp", "20 does not divide the 48 layers"),
    train("set layers by pp", "--pp 4 --set num_layers=47", "pp x vpp", "4 does not divide the 47 layers"),
    train("batch by dp", "--dp 3", "batch", "8", "dp x micro_batch = 3 x 1 = 3"),
    train("batch by dp and micro-batch", "--dp 4 --micro-batch 4", "batch", "dp x micro_batch = 4 x 4 = 16"),
    train("interleaved by pp", "--dp 4 --pp 4 --vpp 3", "interleaved", "divisible by pp", "= 2 and pp = 4"),
    train("vpp without pp", "--vpp 2", "vpp", "pp = 1"),
    train("interleaved without vpp", "--schedule interleaved", "schedule", "vpp = 1"),
    train("gpipe with vpp", "--schedule gpipe --pp 2 --vpp 2", "schedule", "gpipe", "vpp = 2"),
    train("sequence parallel alone", "--sequence-parallel", "sequence_parallel", "tp = 1"),
    train("sequence by tp", "--sequence-parallel --tp 8 --sequence 2047", "sequence_parallel", "2047", "tp = 8"),
    train("learned positions", "--sequence 2049", "sequence", "2049", "2048 learned positions"),
    # --set
    *(
        setting(f"form {text!r}", text, "--set", repr(text), "NAME=VALUE")
        for text in ("", "=", "tp", "=3", "tp=", " = ")
    ),
    setting("hostile form", HOSTILE, "--set", "NAME=VALUE"),
    setting("hostile name", f"{HOSTILE}=1", "unknown symbol", "symperf list symbols"),
    setting("hostile count", f"tp={HOSTILE}", "tp", "found", RANGE),
    setting("hostile rate", f"memory_bandwidth={HOSTILE}", "memory_bandwidth", "plain number"),
    setting("hostile default", f"workspace_bytes={HOSTILE}", "workspace_bytes", "plain number"),
    setting("near name", "memory_bandwith=1e12", "'memory_bandwith'", "did you mean memory_bandwidth"),
    setting("name in capitals", "MICRO_BATCH=2", "'MICRO_BATCH'", "did you mean micro_batch"),
    setting("formal name", "ranks=3", "unknown symbol 'ranks'", "symperf list symbols"),
    train("set: twice", "--set micro-batch=2 --set micro_batch=2", "--set", "micro_batch is given twice"),
    setting("wrong unit", "memory_bandwidth=3 TB", "memory_bandwidth", "'3 TB'", "one of a size"),
    setting("no unit", "memory_bandwidth=3", "memory_bandwidth", "found 3", "is the unit missing?"),
    setting("boolean rate", "memory_bandwidth=true", "memory_bandwidth", "of type bool"),
    setting("NaN rate", "memory_bandwidth=nan", "memory_bandwidth", "nan", "finite and above zero"),
    setting("zero rate", "matrix_rate=0", "matrix_rate", "found 0", "above zero"),
    setting("absurd rate", "memory_bandwidth=1e30", "memory_bandwidth", "1e+30", "between 1 GB/s and 10 PB/s"),
    setting("efficiency above one", "matrix_efficiency=2", "matrix_efficiency", "found 2", "write 80 % as 0.8"),
    setting("half a unit", "compute_units=107.5", "compute_units", "107.5", "whole number"),
    setting("negative latency", "launch_latency=-1 us", "launch_latency", "'-1 us'", "not negative"),
    setting("fractional degree", "tp=2.5", "tp", "found 2.5", RANGE),
    setting("boolean degree", "tp=true", "tp", "found True", RANGE),
    setting("infinite degree", "tp=inf", "tp", "found inf", RANGE),
    setting("huge degree", f"tp={'9' * 400}", "tp", "99...", RANGE),
    setting("text for a stage", "zero=one", "zero", "'one'", "expected 0, 1, 2 or 3"),
    setting("boolean stage", "zero=true", "zero", "True", "expected 0, 1, 2 or 3"),
    setting("number for a choice", "recompute=1", "recompute", "found 1", "none or selective or full"),
    setting("number for a switch", "dropout=0", "dropout", "found 0", "true or false"),
    setting("text for a switch", "sequence_parallel=yes", "sequence_parallel", "'yes'", "true or false"),
    setting("zero layers", "num_layers=0", "num_layers", "found 0", RANGE),
    setting("absurd layers", "num_layers=1e30", "num_layers", "1e+30", RANGE),
    setting("half a layer", "num_layers=47.5", "num_layers", "47.5", RANGE),
    setting("heads by key-value heads", "num_key_value_heads=63", "num_attention_heads", "64", "63 key-value heads"),
    setting("boolean rows", "position_rows=false", "position_rows", "False", RANGE),
    setting("too few rows", "position_rows=5", "sequence", "2048 tokens", "5 learned positions"),
    case(
        "rows without a table",
        ["train", "llama-2-7b", *S, *WORK, "--set", "position_rows=4096"],
        "position_rows",
        "llama-2-7b has no learned positions",
    ),
    setting("NaN batch", "batch=nan", "batch", "nan", RANGE),
    setting("half a token", "sequence=1.5", "sequence", "1.5", RANGE),
    setting("zero bytes", "activation_bytes=0", "activation_bytes", "found 0", "above zero"),
    setting("absurd bytes", "gradient_bytes=1e18", "gradient_bytes", "1e+18", "between 0.0625 B and 1 kB"),
    setting("tiny tile", "tile_long=1e-300", "tile_long", "1e-300", "whole number"),
    setting("negative workspace", "workspace_bytes=-1", "workspace_bytes", "found -1", "not negative"),
    setting("network in part", "scale_up_size=0", "scale_up_size", "found 0", "above zero"),
]


def test_the_cases_have_names_of_their_own() -> None:
    assert len({c.name for c in CASES}) == len(CASES) >= 80


def is_one_clear_line(code: int, out: str, err: str) -> None:
    assert (code, out) == (2, "")
    assert err.startswith("symperf: ")
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    assert err[:-1].isprintable()
    assert len(err) < 2500
    assert "Traceback" not in err


def written(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, body in files.items():
        (folder / name).write_bytes(body if isinstance(body, bytes) else body.encode())


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_bad_input(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, case.files)
    code, out, err = call(case.argv)
    is_one_clear_line(code, out, err)
    for part in case.says:
        assert part in err
    assert not Path("pwned").exists()


@pytest.mark.parametrize("name", ["near flag", "heads by tp", "config: malformed", "set: hostile rate"])
def test_bad_input_in_a_process_of_its_own(tmp_path: Path, name: str) -> None:
    (case,) = [c for c in CASES if c.name == name]
    written(tmp_path, case.files)
    done = subprocess.run(
        [sys.executable, "-m", "symperf", *case.argv, "--json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    is_one_clear_line(done.returncode, done.stdout, done.stderr)
    assert all(part in done.stderr for part in case.says)
    assert not (tmp_path / "pwned").exists()


# --- anything at all

FLAGS = """--tp --pp --dp --vpp --micro-batch --recompute --sequence-parallel --no-sequence-parallel --zero --schedule
    --precision --attention --dropout --overlap-tp --overlap-dp --set --batch --sequence --system -s --json --cp
    --causal-half --bacth -- -h"""
NAMES = """tp pp vpp micro_batch batch sequence num_layers num_key_value_heads head_dim hidden_size vocab_size
    position_rows memory_bandwidth matrix_rate launch_latency scale_up_size scale_up_half_bytes scale_out_latency
    tile_long activation_bytes optimizer_bytes workspace_bytes recompute dropout zero schedule l2_capacity compute_units
    power no_such_name"""
PLAIN = """0 1 2 3 8 64 -1 1.5 1e9 1000000000 1e30 1e-300 1e400 nan inf -inf true none full flash interleaved bf16 fp8 =
    1_0 １ 99999999999999999999 {} [/red] a100-80gb-sxm v100-32gb-sxm gpt-22b llama-2-7b"""
VALUES = st.sampled_from([*PLAIN.split(), "", " ", "\n", "\0", "\udcff", "3 TB/s", "5 us", "80 %", "9" * 5000, HOSTILE])
SETTINGS = st.builds("{}={}".format, st.sampled_from(NAMES.split()), VALUES | st.text(max_size=5))
WORDS = st.sampled_from(FLAGS.split()) | VALUES | SETTINGS | st.text(max_size=8)
PAIRS = st.tuples(st.sampled_from(FLAGS.split()), VALUES) | SETTINGS.map(lambda text: ("--set", text))
ARGUMENTS = st.one_of(
    st.lists(WORDS, max_size=8),
    st.lists(PAIRS, max_size=5).map(lambda pairs: ["train", *M, *S, *WORK, *[word for pair in pairs for word in pair]]),
    st.lists(SETTINGS, max_size=6).map(lambda all_: ["train", *M, *S, *WORK, "--json", *[f"--set={s}" for s in all_]]),
    st.lists(WORDS, max_size=4).map(lambda words: ["inspect", *words]),
    st.lists(WORDS, max_size=3).map(lambda words: ["list", *words]),
)


def refuse(constant: str) -> None:
    raise AssertionError(f"the JSON holds {constant}")


@given(ARGUMENTS)
def test_anything_is_an_answer_or_one_clear_line(call: Any, arguments: list[str]) -> None:
    code, out, err = call(arguments)
    if code:
        is_one_clear_line(code, out, err)
    else:
        assert (bool(out), err) == (True, "")
        if out.startswith("{"):
            json.loads(out, parse_constant=refuse)
    assert not Path("pwned").exists()
