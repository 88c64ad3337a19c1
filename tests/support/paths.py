"""Where things lie in the project."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The project."""
GOLDEN = ROOT / "tests" / "golden"
"""Values from the literature and from PyTorch."""
BENCHMARKS = ROOT / "symperf" / "validation" / "models"
"""Models that were only ever built to be measured."""
ONE_LAYER = str(BENCHMARKS / "gpt-22b-1-layer.json")
"""A dense model that is small to count."""
