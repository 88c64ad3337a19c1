"""Runs: where a cost joins the questions asked of it: analysis, closed forms, spending and sweeps.

Imports `analysis`, `common`, `derive`, `evaluation`, `infer`, `models`, `operations`, `plans`, `spending`, `sweep`,
`systems`, `train`, `train.memory`.
"""
