"""Bytes on a device, and the parameters behind them: state, saved activations, stages of a pipeline, the host.

Imports `language`, `parallel`, `sources`.
"""

from ..language import sympy_cache as sympy_cache
