"""Where things lie in the project."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The project."""
GOLDEN = ROOT / "tests" / "golden"
"""Values from the literature and from PyTorch."""
GOLDEN_2026 = ROOT / "tests" / "golden2"
"""The same of architectures of 2025 and 2026, with their configurations."""
BENCHMARKS = ROOT / "symperf" / "validation" / "models"
"""Models that were only ever built to be measured."""
ONE_LAYER = str(BENCHMARKS / "gpt-22b-1-layer.json")
"""A dense model that is small to count."""
