"""Odd addresses of the explorer's page: 300 cases, 5,000 under `nightly`.

Whatever an address says, the page is in a state that can be: no exception, a reason or finite numbers that are not
negative, an address that says the same, and a command line that Python reads.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from support.effort import NIGHTLY
from support.fuzz_cases import TEXTS
from support.tools import tool

import symperf as sf
from symperf.explore.explorer import Explorer
from symperf.explore.page import STATIC

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("train", "infer") if NIGHTLY else ("train",)
COUNT = 5_000 if NIGHTLY else 300
NUMBERS = ("0", "-0", "1", "2", "8", "64", "4096", "1e9", "1e12", "1e-9", "0.5", "3.7e12", "1e308", "1e309", "-1", "7")
SCRIPT = """
import { readFileSync } from "node:fs";
import { answer, readKinds } from "./model.js";
import { State, commandLine, pythonCode } from "./state.js";
const { page, addresses } = JSON.parse(readFileSync("asked.json", "utf8"));
const kinds = readKinds(page), state = new State(kinds, () => {}), again = new State(kinds, () => {}), found = [];
for (const address of addresses) {
  try {
    state.read(address);
    again.read(state.address());
    if (JSON.stringify(again.now) !== JSON.stringify(state.now)) throw new Error("its own address says another state");
    const told = answer(state.kind, state.config);
    const numbers = told.reason ? [] : [told.value("time"), told.memory.need, told.joules ?? 0, told.dollars ?? 0,
      ...Object.values(told.shares), ...told.rows.flatMap(({ seconds, share, count }) => [seconds, share, count])];
    const odd = numbers.filter((value) => !Number.isFinite(value) || value < -1e-12);
    if (odd.length) throw new Error(`numbers such as ${odd[0]}`);
    found.push([told.reason, told.reason ? 0 : told.value("time"), commandLine(state.kind, state.config), ""]);
    pythonCode(state.kind, state.config);
  } catch (error) { found.push(["", 0, "", `${error.name}: ${error.message}`]); }
}
console.log(JSON.stringify(found));
"""


def address(rng: random.Random, kinds: list[dict[str, Any]]) -> str:
    """An address: of known names and values, some of them odd."""
    pairs = []
    for slot in rng.choice((("a",), ("a",), ("a", "b"), ("b",), ())):
        kind = rng.choice(kinds)
        pairs.append((slot, kind["name"] if rng.random() < 0.9 else rng.choice(TEXTS)))
        names = [each["name"] for each in (*kind["choices"], *kind["numbers"])]
        for _ in range(rng.choice((1, 2, 4))):
            name = rng.choice(names) if rng.random() < 0.9 else rng.choice(TEXTS)
            value = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.choice(TEXTS)
            pairs.append((f"{slot}.{name}", value))
    if rng.random() < 0.2:
        pairs.append((rng.choice(("slot", "x", "y", "__proto__", "a.__proto__")), rng.choice((*TEXTS, "b"))))
    rng.shuffle(pairs)
    text = "&".join(f"{quote(name, errors='replace')}={quote(value, errors='replace')}" for name, value in pairs)
    return text if rng.random() < 0.9 else text[: rng.randrange(len(text) + 1)] + rng.choice(("%", "&&", "%zz", "="))


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    varied = dict.fromkeys(("recompute", "sequence_parallel", "zero", "schedule", "attention"), ())
    plan, models, systems = sf.Plan(tp=2, dp=2), [sf.Model.load("gpt2")], ("h100-sxm", "a100-80gb-sxm")
    loaded, work = [sf.System.load(name) for name in systems], {"train": (8, 128), "infer": (8, 128, 8)}
    explorer = Explorer(models, loaded, plan, kinds=KINDS, **work, varied=varied)
    found: dict[str, Any] = json.loads(json.dumps(explorer.data()))
    return found


def test_odd_addresses_break_no_rule(page: dict[str, Any], tmp_path: Path) -> None:
    addresses = [address(random.Random(f"address {k}"), page["kinds"]) for k in range(COUNT)]
    for path in STATIC.glob("*.js"):
        shutil.copy(path, tmp_path)
    texts = {"package.json": '{"type": "module"}', "main.js": SCRIPT}
    for name, text in (texts | {"asked.json": json.dumps({"page": page, "addresses": addresses})}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [tool("node", "nodejs"), "main.js"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    broken = {addresses[k][:300]: each[3] for k, each in enumerate(found) if each[3]}
    assert not broken, json.dumps(dict(list(broken.items())[:10]), indent=1)
    assert len({each[1] for each in found}) > 10  # many answers
    assert any(each[0] for each in found)  # and refusals
    for command_line in {each[2] for each in found}:
        assert "\n" not in command_line
        assert command_line.startswith(tuple(f"symperf {kind} gpt2 -s " for kind in KINDS))
