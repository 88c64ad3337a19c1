"""Generation and serving: decode steps, caches, queues, speculation, disaggregation.

Imports `kernels`, `language`, `mathematics`, `sources`.
"""
