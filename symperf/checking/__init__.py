"""Counts of a model held against those of its modules, which transformers builds from the same file on the meta device.

PyTorch and transformers are imported here alone, and only when a model is built.

Imports `common`, `models`, `runs`.
"""
