"""The search of plans for inference: within latency limits, of one batch, or with prefill and decode apart.

Imports `plan_search`, `serve`, `runs` and what they import.
"""
