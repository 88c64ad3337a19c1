"""Bytes on a device, and the parameters behind them: state, saved activations, stages of a pipeline, the host.

May import `parallel` (micro-batches in flight), `language` and `sources`.

Imports `language`, `parallel`, `sources`.
"""
