"""Serving: iterations of continuous batching, their steady state under load, its limits, and pools of devices.

Imports `common`, `infer`, `models`, `operations`, `plans`, `runs`, `spending`, `systems`, `train`.
"""
