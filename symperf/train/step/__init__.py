"""The training step as a schedule tree: embedding and head, pipelines, optimizer, what the host and chance add.

Imports `train.layers`, `train.memory`, `operations` and what they import.
"""
