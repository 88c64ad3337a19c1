"""Constants of kernels from tables of measured kernels: of a device, or of a software's kernels on it.

Imports `calibration`, `common`, `infer`, `systems`, `validation.kernels`.
"""
