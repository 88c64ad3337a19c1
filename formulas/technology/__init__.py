"""Chips from their technology: area, power and links to rates; energy, cost and carbon of what runs on them.

Knows nothing of models or kernels.

Imports `language`, `mathematics`, `sources`.
"""

from ..language import sympy_cache as sympy_cache
