"""Models: a `config.json` as an architecture and sizes, by the tables of its family, and what its layers count.

Imports `common`.
"""
