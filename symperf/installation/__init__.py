"""What is installed on this machine, and what of it is slow or missing: packages, the cache, compilers, GPUs.

Imports `common`.
"""
