"""Search: every plan that a model, a system, devices, a batch and a sequence allow, and the best of them.

A room named `search` would hide the function `symperf.search`; `train`, `infer` and `serve` are verbs for that reason.

Imports `analysis`, `common`, `models`, `operations`, `plans`, `runs`, `spending`, `systems`, `train`, `train.memory`,
`train.step`.
"""
