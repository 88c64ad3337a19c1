"""Pauses of Python's garbage collector."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_KEPT: list[None] = []


def keep_until_exit() -> None:
    """Say that this process answers one command: what a pause leaves is never looked at again, nor when it ends."""
    _KEPT.append(None)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No search for garbage inside: expressions are many small objects that live on, and it would find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _KEPT:
            gc.freeze()  # else the first collection after the pause looks at all of it, also between Ctrl-C and the end
        if enabled:
            gc.enable()
