"""The language of costs: atoms, dimensions, the vocabulary of symbols, `@formula`, and the fold that proves directions.

Every other room is written in it.

Imports no other room.
"""

from . import sympy_cache as sympy_cache
