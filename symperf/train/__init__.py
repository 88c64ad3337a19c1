"""The cost of a training step: `layers`, `step` and `memory`, built, compiled and bound to numbers.

Imports `common`, `models`, `operations`, `plans`, `systems`, `train.layers`, `train.memory`, `train.step`.
"""
