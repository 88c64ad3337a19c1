"""Inference: prefill, decode steps, a whole generation, and what the serving software adds."""
