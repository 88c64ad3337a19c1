"""The training step as a schedule tree: embedding and head, pipelines, optimizer, what the host and chance add.

Imports `models`, `operations`, `plans`, `train.layers`, `train.memory`.
"""
