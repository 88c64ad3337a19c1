"""Parallel layouts: pipeline schedules, sharding, sequences and experts dealt to devices.

Imports `collectives`, `language`, `sources`.
"""
