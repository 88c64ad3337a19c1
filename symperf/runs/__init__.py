"""Runs: where a cost joins the questions asked of it: analysis, closed forms, spending and sweeps.

Imports `train`, `infer`, `evaluation`, `analysis`, `derive`, `spending`, `sweep` and what they import.
"""
