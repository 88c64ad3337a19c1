"""Exact questions about a bound run: regimes, crossovers, inverses, limits, attribution.

Along one symbol every step of a compiled cost is, between finitely many points, a sum of powers of the symbol (and of
its logarithm) with rational coefficients. `forms` computes with them exactly, `roots` finds every sign change of one,
`line` carries a whole program along the symbol as pieces. What cannot be said so is refused, never sampled.

Imports `book`, `common`, `evaluation`, `pictures`, `plans`, `spending`, `systems`, `train`.
"""

from __future__ import annotations

from .answers import Unreachable as Unreachable
