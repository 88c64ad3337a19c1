"""Kernels on one device: FLOPs, bytes and the time of products, attention, scans, streams and optimizers.

Knows nothing of networks, schedules or models.

Imports `language`, `mathematics`, `sources`.
"""

from ..language import sympy_cache as sympy_cache
