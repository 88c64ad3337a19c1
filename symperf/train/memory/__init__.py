"""Bytes of a training step: weights, gradients, optimizer state and saved activations, by device and by stage.

Imports `common`, `models`, `operations`, `plans`, `systems`, `train.layers`.
"""
