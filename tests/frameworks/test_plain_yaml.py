"""Plain YAML is read as PyYAML reads it, and the rest is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symperf.common.errors import InputError
from symperf.common.plain_yaml import read_yaml

yaml = pytest.importorskip("yaml")

TEXTS = (
    "a: 1\nb: x y # c\nc: 'it''s'\nd: \"q\\n\"\n",
    '# first\n---\nlist:\n- a\n- b: 1\n  c: [x, "y, z", {d: 2}]\n-   e: true\nlast: -1.5e-3\n',
    "deep:\n  er:\n    - - a\n      - b\n    - c\nurl: http://x:80/y#z\n",
    "empty:\nother: ~\ntext: |\n  one\n  two\nfold: >\n  one\n  two\nflow: [a,\n  b]\n",
    "pad: <|end|>\nneg: -1\nword: no-op\nversion: 1.2.3\ntime: 2e-5x\n",
)
SCALARS = st.one_of(
    st.integers(-1000, 1000),
    st.booleans(),
    st.none(),
    st.floats(-1e3, 1e3).map(lambda x: round(x, 3)),
    st.text(st.characters(categories=("L", "N"), include_characters=" _-./:'\"#"), max_size=9),
)
DATA = st.dictionaries(
    st.from_regex(r"[a-z]{1,4}_x", fullmatch=True),
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3),
            st.dictionaries(st.from_regex(r"[a-z]{1,3}_y", fullmatch=True), inner, min_size=1, max_size=3),
        ),
        max_leaves=8,
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_read_as_by_pyyaml(text: str) -> None:
    assert read_yaml(text, "f") == yaml.safe_load(text)


@given(DATA, st.booleans())
def test_whatever_pyyaml_writes_is_read_as_it_was(data: Any, flow: bool) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True, width=10_000)
    assert read_yaml(text, "f") == data


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\n b: 2\n", "line 2"),
        ("a: &x 1\n", "anchors"),
        ("a: !!python/object:x 1\n", "anchors"),
        ("a: [1, 2\n", "the bracket to be closed"),
        ("a: 1\na: 2\n", "each key once"),
        ("a:\n\tb: 1\n", "blanks as indentation"),
        ("a: [1}]\n", "a value as JSON or plain YAML has it"),
        ("? a\n: b\n", "line 2"),
        ("a: " + "[" * 99 + "]" * 99, "a value as"),
        ("a: 1\nwords alone\n", "KEY: VALUE"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        read_yaml(text, "f.yaml")
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) == 1
