"""A compiled structure at the values of its symbols: numbers, breakdown, exact shares, and how sure they are.

Imports `common`, `models`, `operations`, `plans`, `systems`.
"""
