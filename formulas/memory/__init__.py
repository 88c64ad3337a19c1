"""Bytes and counts: parameters, state, saved activations, stages, what the host holds."""
