"""Pictures: one style, kinds of charts that any answer can be put into, and the files that they are written to.

Imports `common`.
"""
