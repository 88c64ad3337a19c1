"""Timelines: the passes of a step, an inference or an iteration as slices on the tracks of each stage of a pipeline.

Imports `common`, `evaluation`, `infer`, `operations`, `plans`, `runs`, `serve`, `train`, `train.memory`, `train.step`.
"""
