"""Generation: attention over a growing cache, states, speculation, and serving as queues of requests.

May import `kernels`, `mathematics`, `language` and `sources`.

Imports `kernels`, `language`, `mathematics`, `sources`.
"""
