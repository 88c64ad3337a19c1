"""Bytes and counts: parameters, state, saved activations, stages, what the host holds.

Imports `language`, `parallel`, `sources`.
"""
