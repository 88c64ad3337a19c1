"""A compiled structure at the values of its symbols: numbers, breakdown, exact shares, and how sure they are.

Imports `operations` and what that imports. It knows nothing of the questions that are asked of a run.
"""
