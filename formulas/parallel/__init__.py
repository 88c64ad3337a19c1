"""What parallelism adds: schedules of pipelines, sharded state, sequences in parts, experts on many devices.

Times of passes come in as arguments: it knows no kernels.

Imports `collectives`, `language`, `mathematics`, `sources`.
"""

from ..language import sympy_cache as sympy_cache
