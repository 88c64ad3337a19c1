"""Completion offers every verb, flag and name in each shell, and shells that are there complete by it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from symperf.cli.completion import SCRIPTS
from symperf.cli.completion_words import flags_of, words
from symperf.cli.parser import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINES = [
    ("symperf tra", {"train"}),
    ("symperf train llama-2", {"llama-2-7b", "llama-2-13b", "llama-2-70b"}),
    ("symperf train x -s h20", {"h20", "h200-sxm"}),
    ("symperf train x --recompute ", {"none", "selective", "full"}),
    ("symperf train x --no-seq", {"--no-sequence-parallel"}),
    ("symperf infer x --stack vllm-d", {"vllm-deepep"}),
    ("symperf derive train mixtral-8x7", {"mixtral-8x7b"}),
    ("symperf cite train mixtral-8x7", {"mixtral-8x7b"}),
    ("symperf list sys", {"systems"}),
    ("symperf sweep study.t", {"study.toml"}),
    ("symperf train x --batch ", set()),
]
ASK_BASH = r"""
source ./script
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _symperf
    echo "${COMPREPLY[*]}"
done
"""
ASK_FISH = r"""
source ./script
while read -l line
    echo (complete -C $line | string replace -r '\t.*' '')
end
"""


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")


def run(shell: str, folder: Path, text: str, lines: str = "") -> list[str]:
    """What a shell prints that has read its script in a folder with a study."""
    needs(shell)
    (folder / "script").write_text(SCRIPTS[shell](words()), encoding="utf-8")
    (folder / "study.toml").touch()
    quiet = {"bash": ["--norc"], "fish": ["--no-config"], "zsh": ["-f"]}[shell]
    done = subprocess.run(
        [shell, *quiet, "-c", text], cwd=folder, input=lines, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_every_flag_of_every_verb_is_offered() -> None:
    """And each has a place in the scripts of all shells."""
    _, parsers = build()
    offered = words()
    assert set(offered.verbs) == set(parsers)
    scripts = {shell: make(offered) for shell, make in SCRIPTS.items()}
    for verb, parser in parsers.items():
        assert set(parser.flags()) <= set(flags_of(offered.slots[verb]))
        for flag in parser.flags():
            assert f"{flag} " in scripts["bash"].replace("'", " ")
            assert f"*{flag}" in scripts["zsh"]
            assert f"-l {flag[2:]} " in scripts["fish"]


def test_every_list_that_is_named_is_there() -> None:
    offered = words()
    named = {slot.listed for slots in offered.slots.values() for slot in slots} - {""}
    assert {"models", "systems", "serving_stacks", "training_stacks", "stacks", "recompute", "schedule"} <= named
    assert named <= set(offered.lists)


def test_no_word_needs_quotes() -> None:
    """Names are put into scripts that shells read."""
    for name, listed in words().lists.items():
        assert listed, name
        for word in listed:
            assert all(each.isalnum() or each in "._-+" for each in word), word


@pytest.mark.parametrize(("shell", "text"), [("bash", ASK_BASH), ("fish", ASK_FISH)])
def test_a_shell_completes(shell: str, text: str, tmp_path: Path) -> None:
    found = run(shell, tmp_path, text, "".join(f"{line}\n" for line, _ in LINES))
    assert [set(each.split()) for each in found] == [expected for _, expected in LINES]


def test_bash_completes_behind_an_equals_sign(tmp_path: Path) -> None:
    """It parts the word there."""
    lines = "symperf train x --system = h20\nsymperf train x --system =\nsymperf train x --system = h20 --recompute \n"
    named, every, after = run("bash", tmp_path, ASK_BASH, lines)
    assert set(named.split()) == {"h20", "h200-sxm"}
    assert set(words().lists["systems"]) <= set(every.split())
    assert set(after.split()) == {"none", "selective", "full"}


def test_zsh_reads_its_script(tmp_path: Path) -> None:
    ask = "autoload -U compinit && compinit -u -D && source ./script && print $_comps[symperf]"
    assert run("zsh", tmp_path, ask) == ["_symperf"]


def test_completion_needs_no_sympy() -> None:
    """A shell asks for it whenever it starts."""
    heavy = "{'sympy', 'numpy', 'numba', 'rich', 'jinja2'}"
    text = (
        f"import sys; from symperf.cli import main; main(['completion', 'zsh']); assert not {heavy} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", text], stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_an_unknown_shell_is_refused(refused: Callable[[list[str]], str], call: Any) -> None:
    line = "symperf: completion: argument SHELL: found 'fihs', expected bash or zsh or fish; did you mean fish?\n"
    assert refused(["completion", "fihs"]) == line
    assert 'eval "$(symperf completion bash)"' in call(["completion", "-h"]).out
