"""Docstrings as the reference shows them: examples that stand in the text are blocks of code."""

from __future__ import annotations

from typing import Any

import griffe
from stage import EXAMPLE


class Examples(griffe.Extension):
    """Puts fences around examples of docstrings, which are found by their prompts."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object that was read."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```", obj.docstring.value)
