"""The schedule algebra and the operations that every cost is made of, and what a compiled structure is.

Imports `common`, `models`, `plans`.
"""
