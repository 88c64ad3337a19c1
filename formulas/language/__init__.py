"""The language of costs: atoms, dimensions, the vocabulary of symbols, `@formula`, and the fold that proves directions.

May import SymPy alone; every other room is written in it.

Imports no other room.
"""
