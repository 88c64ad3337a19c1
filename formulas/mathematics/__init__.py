"""Sums and powers in closed form that several pages use.

Imports `language`.
"""
