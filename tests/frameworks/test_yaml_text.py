"""YAML is read as frameworks read it, and what no configuration has is refused in one line."""

from __future__ import annotations

import pytest

from symperf.common.errors import InputError
from symperf.common.yaml_text import read_yaml


def test_configurations_are_read() -> None:
    """PyYAML's numbers: 2e-5 has no dot and is a text, as in the frameworks that read it with PyYAML."""
    text = "# first\n---\nlist:\n- a\n- b: 1\n  c: [x, 'y, z', {d: 2}]\nrate: 2.0e-5\nother: 2e-5\n"
    assert read_yaml(text + "empty:\npad: <|end|>\n", "f") == {
        "list": ["a", {"b": 1, "c": ["x", "y, z", {"d": 2}]}],
        "rate": 2e-5,
        "other": "2e-5",
        "empty": None,
        "pad": "<|end|>",
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\n b: 2\n", "line 2"),
        ("a: &x 1\n", "line 1: not valid YAML: expected no anchors"),
        ("a: *x\n", "no anchors"),
        ("a: !!python/object:os.system x\n", "no anchors, aliases or tags"),
        ("a: [1, 2\n", "line 2"),
        ("a: 1\na: 2\n", "line 2: not valid YAML: expected 'a' once"),
        ("a:\n\tb: 1\n", "line 2"),
        ("a: [1}]\n", "line 1"),
        ("? [a]\n: b\n", "a name as key"),
        ("yes: 1\n", "a name as key"),
        ("a: " + "[" * 99 + "]" * 99, "at most 50 levels"),
        ("a: 1\nwords alone\n", "line 3"),
        ("a: 1\n---\nb: 1\n", "line 2"),
        ("a: \0\n", "not valid YAML"),
        ("a: 2024-13-45\n", "not valid YAML"),
    ],
)
def test_the_rest_is_refused_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        read_yaml(text, "f.yaml")
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) == 1
