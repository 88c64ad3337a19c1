"""Plans as the options of frameworks: one small file for each framework, whose option names are the documented ones.

Imports `common`, `models`, `plans`, `systems`, `train`.
"""
