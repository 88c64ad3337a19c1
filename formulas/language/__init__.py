"""The language that formulas are written in: symbols, atoms, dimensions, and the fold that proves how they behave.

Imports no other room.
"""
