"""Kernels: matrix products, attention, scans, elementwise work, and the roofline that times them.

Imports `language`, `mathematics`, `sources`.
"""
