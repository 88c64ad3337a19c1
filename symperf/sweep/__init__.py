"""Sweeps: a run's quantities over grids of any size, streamed to files or reduced to the best points.

Imports `common`, `evaluation`, `models`, `plans`, `systems`, `train`.
"""
