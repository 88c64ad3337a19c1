"""The layers of a model as operations of a training step: forward, recomputed and backward.

Imports `common`, `models`, `operations`, `plans`.
"""
