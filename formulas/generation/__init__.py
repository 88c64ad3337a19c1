"""Generation: attention over a growing cache, states, speculation, and serving as queues of requests.

Imports `kernels`, `language`, `mathematics`, `sources`.
"""

from ..language import sympy_cache as sympy_cache
