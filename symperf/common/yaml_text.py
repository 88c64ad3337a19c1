"""YAML of configurations, as PyYAML reads it, which the frameworks use themselves.

Data alone is made (`SafeLoader`). What configurations have no use for is refused with its line: tags, anchors and
aliases, keys that come twice or are no text, several documents.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml.events import AliasEvent, NodeEvent

from .errors import InputError, quote

MOST_DEEP = 50
"""Levels of nesting; no configuration comes near it."""


class _RefusedError(yaml.MarkedYAMLError):
    def __init__(self, expected: str, mark: Any) -> None:
        super().__init__(problem=f"expected {expected}", problem_mark=mark)


class _Loader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        named = isinstance(event, NodeEvent) and (event.anchor or getattr(event, "tag", None))
        if named or isinstance(event, AliasEvent):
            raise _RefusedError("no anchors, aliases or tags", event.start_mark)
        if self.depth == MOST_DEEP:
            raise _RefusedError(f"at most {MOST_DEEP} levels", event.start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key)
            if not isinstance(name, str):
                raise _RefusedError("a name as key", key.start_mark)
            if name in seen:
                raise _RefusedError(f"{quote(name)} once", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def read_yaml(text: str, label: str) -> Any:
    r"""The data of a text.

    Raises:
        InputError: a line that is no YAML of a configuration.

    >>> read_yaml("a: 1\nb:\n- x\n- y: [1, 2.5, true]\n", "f")
    {'a': 1, 'b': ['x', {'y': [1, 2.5, True]}]}
    """
    try:
        return yaml.load(text, _Loader)  # a SafeLoader  # nosec B506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise InputError(f"{label}: {where}not valid YAML: {' '.join(str(error.problem).split())}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{label}: not valid YAML: {' '.join(str(error).split())}") from None
