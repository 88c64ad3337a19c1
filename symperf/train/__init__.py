"""The cost of a training step: `layers`, `step` and `memory`, built, compiled and bound to numbers.

Imports `operations` and what that imports, and `systems`.
"""
