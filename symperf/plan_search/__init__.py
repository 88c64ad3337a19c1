"""Search: every plan that a model, a system, devices, a batch and a sequence allow, and the best of them.

The package is called `searching` because `symperf.search` is the function.
"""
