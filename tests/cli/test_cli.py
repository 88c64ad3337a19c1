"""The command line with good input: exit status 0, the JSON of the public contract, tables for people, help."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from symperf import __version__

TRAIN = ["train", "gpt-22b", "-s", "a100-80gb-sxm", "--tp", "8", "--batch", "8", "--sequence", "2048"]
VERBS = ("train", "inspect", "list", "cache", "completion", "doctor", "mcp")
NUMBER = (int, float)
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}


def finite(text: str) -> Any:
    """The JSON of a text that holds exactly one object and no NaN or infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    data = json.loads(text, parse_constant=refuse)
    assert isinstance(data, dict)
    return data


def answer(call: Any, *arguments: str) -> Any:
    code, out, err = call([*arguments, "--json"])
    assert (code, err) == (0, "")
    return finite(out)


def test_train_json_has_every_key_of_the_contract(call: Any) -> None:
    data = answer(call, *TRAIN)
    for key in ("time_s", "tokens_per_s", "tokens_per_s_per_device", "tflops_per_device", "mfu", "hfu"):
        assert isinstance(data[key], float), key
        assert data[key] > 0, key
    assert data["devices"] == 8
    assert type(data["devices"]) is int
    classes = ("weights", "gradients", "optimizer", "activations", "workspace", "total")
    assert set(data["memory_bytes"]) == {*classes, "reserved"}
    assert all(isinstance(value, NUMBER) for value in data["memory_bytes"].values())
    assert sum(data["memory_bytes"][name] for name in classes[:-1]) == pytest.approx(data["memory_bytes"]["total"])
    assert data["capacity_bytes"] == 79.15 * 2**30
    assert data["fits"] is True
    assert all(isinstance(name, str) and isinstance(share, float) for name, share in data["shares"].items())
    assert sum(data["shares"].values()) == pytest.approx(1)
    for row in data["breakdown"]:
        assert {"name", "time_s", "share", "bound", "flops", "bytes"} <= set(row)
        assert isinstance(row["name"], str)
        assert all(isinstance(row[key], NUMBER) for key in ("time_s", "share", "flops", "bytes"))
        assert row["bound"] is None or row["bound"] in data["shares"]
    assert sum(row["time_s"] for row in data["breakdown"]) == pytest.approx(data["time_s"])
    assert sum(row["share"] for row in data["breakdown"]) == pytest.approx(1)
    assert all(isinstance(text, str) for text in data["warnings"])


def test_the_numbers_of_train_agree_with_each_other(call: Any) -> None:
    data = answer(call, *TRAIN)
    assert data["tokens_per_s"] == pytest.approx(8 * 2048 / data["time_s"])
    assert data["tokens_per_s_per_device"] == pytest.approx(data["tokens_per_s"] / 8)
    assert data["mfu"] == pytest.approx(data["tflops_per_device"] * 1e12 / 312e12)
    assert 0 < data["mfu"] <= data["hfu"] < 1


def test_inspect_json_has_every_key_of_the_contract(call: Any) -> None:
    data = answer(call, "inspect", "llama-2-7b", "--batch", "2", "--sequence", "128")
    parts = {"total", "embedding", "non_embedding", "active_per_token", "per_layer", "language"}
    assert {*parts, "vision", "audio"} == set(data["parameters"])
    assert all(type(data["parameters"][part]) is int for part in parts)
    assert data["parameters"]["vision"] is data["parameters"]["audio"] is None
    assert data["parameters"]["total"] == 6738415616
    assert data["parameters"]["embedding"] + data["parameters"]["non_embedding"] == data["parameters"]["total"]
    assert data["class_defaults"] == [
        {"key": key, "value": False, "source": "transformers 5.24"} for key in ("attention_bias", "mlp_bias")
    ]
    assert data["kv_bytes_per_token"] == 2 * 32 * 4096 * 2
    flops = data["flops_forward"]
    assert set(flops) == {"total", "attention_scores", "projections", "mlp", "lm_head"}
    assert all(type(value) is int for value in flops.values())
    assert flops["total"] == sum(value for name, value in flops.items() if name != "total")
    assert flops["lm_head"] == 2 * (2 * 128) * 4096 * 32000
    assert sum(layer["count"] for layer in data["layers"]) == 32
    assert all(set(layer) == {"kind", "count"} for layer in data["layers"])


def test_causal_half_counts_the_visible_pairs(call: Any) -> None:
    whole, half = (
        answer(call, "inspect", "gpt2", "--sequence", "9", *flag)["flops_forward"] for flag in ([], ["--causal-half"])
    )
    assert half["attention_scores"] * 2 * 9 == whole["attention_scores"] * 10
    assert half["mlp"] == whole["mlp"]


@pytest.mark.parametrize(
    ("what", "types"),
    [
        ("models", {"name": str, "family": str, "num_layers": int, "hidden_size": int, "vocab_size": int}),
        ("systems", {"name": str, "matrix_rate": str, "memory_bandwidth": str, "title": str}),
        ("symbols", {"name": str, "glyph": str, "unit": str, "domain": str, "sentence": str}),
        ("formulas", {"name": str, "page": str, "unit": str, "sentence": str, "source": str}),
    ],
)
def test_list(call: Any, what: str, types: dict[str, type]) -> None:
    rows = answer(call, "list", what)[what]
    assert len(rows) > 20
    for row in rows:
        for key, kind in types.items():
            assert isinstance(row[key], kind), (row["name"], key)
    code, out, err = call(["list", what])
    assert (code, err) == (0, "")
    assert all(row["name"] in out for row in rows)


def test_list_symbols_shows_the_values_of_a_system(call: Any) -> None:
    rows = {row["name"]: row for row in answer(call, "list", "symbols", "-s", "h100-sxm")["symbols"]}
    assert rows["scale_up_bandwidth"]["value"] == 450e9
    assert rows["scale_up_bandwidth"]["source"]
    assert rows["tp"]["value"] is None


@pytest.mark.parametrize("verb", ["gpt-22b", "llama-2-7b"])
def test_inspect_prints_a_table(call: Any, verb: str) -> None:
    code, out, err = call(["inspect", verb, "--sequence", "2048"])
    assert (code, err) == (0, "")
    for part in (verb, "parameters, total", "KV cache a token", "forward FLOPs, total", "hidden_size"):
        assert part in out


def test_train_prints_time_bounds_and_shares(call: Any) -> None:
    data = answer(call, *TRAIN)
    code, out, err = call(TRAIN)
    assert (code, err) == (0, "")
    assert re.search(rf"step time +{data['time_s']:.4g} s", out)
    assert f"{100 * data['mfu']:.1f} %" in out
    for resource, share in data["shares"].items():
        assert f"{resource} {100 * share:.1f} %" in out
    (row,) = [line for line in out.splitlines() if line.startswith("layer/mlp/up ")]
    assert re.search(rf"\d ms .*\d\.\d % +({'|'.join(data['shares'])}) .*FLOP .*B", row)
    assert ": fits, margin" in out


def test_a_run_that_does_not_fit_says_what_would(call: Any) -> None:
    arguments = [*TRAIN, "--micro-batch", "8"]
    data = answer(call, *arguments)
    assert data["fits"] is False
    assert "does not fit" in data["warnings"][0]
    assert "--recompute full" in data["warnings"][0]
    code, out, err = call(arguments)
    assert (code, err) == (0, "")
    assert "warning: does not fit" in out


@pytest.mark.parametrize(
    ("flags", "same"),
    [
        ("--set tp=4 --set micro-batch=2", "--tp 4 --micro-batch 2"),
        ("--set tp=4.0", "--tp 4"),
        ("--set batch=16", "--batch 16"),
        ("--set recompute=full --set zero=1", "--recompute full --zero 1"),
        ("--set dropout=FALSE", "--no-dropout"),
        ("--set schedule=interleaved --pp 2 --vpp 2", "--pp 2 --vpp 2"),
        ("--set overlap_tp=0.5", "--overlap-tp .5"),
        ("--precision fp16", "--set precision=fp16"),
        ("--set memory_bandwidth=2.039e12", ""),
        ("--set memory_bandwidth=2039GB/s", ""),
        ("--set launch_latency=0 --set num_layers=48", "--set launch_latency=0"),
        ("--set workspace_bytes=1GB", "--set workspace_bytes=1e9"),
        ("--tp 8 --tp 4", "--tp 4"),
    ],
)
def test_ways_to_say_the_same(call: Any, flags: str, same: str) -> None:
    assert answer(call, *TRAIN, *flags.split()) == answer(call, *TRAIN, *same.split())


def test_set_changes_the_answer(call: Any) -> None:
    base = answer(call, *TRAIN)["time_s"]
    assert answer(call, *TRAIN, "--set", "memory_bandwidth=4.8 TB/s")["time_s"] < base
    assert answer(call, *TRAIN, "--set", "num_layers=96")["time_s"] > 1.5 * base


LARGE = [
    "hidden_size",
    "num_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "position_rows",
    "batch",
    "sequence",
]


@pytest.mark.parametrize(
    "plan",
    [
        {"tp": 1, "micro_batch": 10**9},
        {"tp": 10**9, "pp": 10**9},
        {"tp": 10**9, "pp": 10**9, "dp": 10**9},
        {"recompute": "full", "vpp": 10**8, "pp": 10, "attention": "flash"},
    ],
    ids=str,
)
def test_the_largest_sizes_stay_finite(call: Any, plan: dict[str, Any]) -> None:
    values = dict.fromkeys(LARGE, 10**9) | plan
    data = answer(call, *TRAIN, *[part for name, value in values.items() for part in ("--set", f"{name}={value}")])
    assert data["time_s"] > 0
    assert data["devices"] == plan.get("tp", 8) * plan.get("pp", 1) * plan.get("dp", 1)


@pytest.mark.parametrize("name", ["[bold]x", "a[/red]", ":smile:", "日本語", "new\nline", "gpt-22b"])
def test_any_name_of_a_folder_is_printed(call: Any, tmp_path: Any, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(LLAMA))
    system = folder / "mine.toml"
    system.write_text('base = "h100-sxm"\nname = "[/b]"\ntitle = "[/c] :smile:"\n')
    train = ["train", str(folder), "-s", str(system), "--batch", "1", "--sequence", "8"]
    data = answer(call, *train)
    assert (data["model"], data["system"]) == (name.rpartition("/")[2], "[/b]")
    for arguments in (["inspect", str(folder)], train):
        code, out, err = call(arguments)
        assert (code, err) == (0, "")
        assert data["model"] in out
    assert "[/c] :smile:" in out


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(call: Any, verb: str) -> None:
    code, out, err = call([verb, "-h"])
    assert (code, err) == (0, "")
    assert f"Example: symperf {verb}" in out
    assert "--json" in out


def test_help_and_version(call: Any) -> None:
    code, out, err = call(["-h"])
    assert (code, err) == (0, "")
    assert "Example: symperf train" in out
    assert all(verb in out for verb in VERBS)
    assert call(["--version"]) == (0, f"symperf {__version__}\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_help_works(call: Any, verb: str) -> None:
    example = re.search("Example: symperf (.*)", call([verb, "-h"]).out)
    assert example
    assert answer(call, *example[1].split())


# --- in another process


def symperf(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "symperf", *arguments],
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"COLUMNS": "1", "FORCE_COLOR": "1"},
        {"SYMPERF_CACHE": ""},
    ],
    ids=str,
)
def test_environments(environment: dict[str, str], tmp_path: Any) -> None:
    folder = tmp_path / "modèle"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    done = symperf("inspect", str(folder), **({"XDG_CACHE_HOME": str(tmp_path)} | environment))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"(llama)" in done.stdout


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs the file modes of POSIX")
@pytest.mark.parametrize("kind", ["a file", "below a file", "read-only", "open to others", "absent"])
def test_any_cache_folder(kind: str, tmp_path: Any) -> None:
    folder = tmp_path / "cache"
    if "file" in kind:
        folder.write_text("")
    elif kind != "absent":
        folder.mkdir()
        folder.chmod(0o500 if kind == "read-only" else 0o777)
    chosen = folder / "below" if kind == "below a file" else folder
    done = symperf("inspect", "gpt2", "--json", SYMPERF_CACHE=str(chosen))
    told = {"a file": b"Not a directory", "open to others": b"chmod 700"}.get(kind, b"")
    assert done.returncode == 0
    assert done.stderr == b"" or done.stderr.startswith(b"symperf: note: the cache")
    assert told in done.stderr
    assert done.stderr.count(b"\n") <= 1
    assert finite(done.stdout.decode())["parameters"]["total"] > 0
    if kind == "open to others":
        assert not list(folder.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("arguments", ["list symbols", "list models --json", "-h"])
@pytest.mark.parametrize("target", ["| true", ">&-"])
def test_a_reader_that_has_left(arguments: str, target: str) -> None:
    command = f"{sys.executable} -m symperf {arguments} {target}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
