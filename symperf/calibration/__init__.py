"""Fit the efficiencies and latencies of a system to a user's own measurements.

Imports `common`, `evaluation`, `infer`, `measuring`, `operations`, `runs`, `systems`, `validation`.
"""
