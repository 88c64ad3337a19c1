"""Micro-benchmarks of the device that is there, in the columns that `symperf calibrate` reads; needs PyTorch.

Imports `common`.
"""
