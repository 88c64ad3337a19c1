"""What each verb is called and which flags it has; one file for verbs of one subject, light to import."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..parser import Parser

Verb = Callable[[str, str, str, str], "Parser"]
"""Adds a verb: its name, what it does, an example, and the module of its work."""
