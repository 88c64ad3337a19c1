"""Serving: iterations of continuous batching, their steady state under load, its limits, and pools of devices.

Imports `analysis`, `common`, `evaluation`, `infer`, `models`, `operations`, `plans`, `runs`, `systems`, `train`.
"""
