"""Bytes of a training step: weights, gradients, optimizer state and saved activations, by device and by stage.

Imports `train.layers`, `operations` and what they import.
"""
