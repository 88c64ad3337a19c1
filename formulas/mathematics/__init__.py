"""Mathematics that costs share: sums over the steps of a generation in closed form, and fractions that stay in bounds.

Imports `language`.
"""

from ..language import sympy_cache as sympy_cache
