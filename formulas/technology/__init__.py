"""Chips from their technology: area, power and links to rates; energy, cost and carbon of what runs on them.

May import `mathematics`, `language` and `sources`; knows nothing of models or kernels.

Imports `language`, `mathematics`, `sources`.
"""
