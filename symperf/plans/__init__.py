"""Plans: their fields, the structural choices that follow, and the rules that they must satisfy.

Imports `common`, `models`, `systems`.
"""
