"""Inference: prefill, decode steps, a whole generation, and what the serving software adds.

Imports `common`, `models`, `operations`, `plans`, `systems`, `train`, `train.memory`.
"""
