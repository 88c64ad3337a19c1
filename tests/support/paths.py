"""Where things lie in the project."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The project."""
GOLDEN = ROOT / "tests" / "golden"
"""Values from the literature and from PyTorch."""
