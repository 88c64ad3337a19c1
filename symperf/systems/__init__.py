"""Devices, their networks and memories, quantities with units, and profiles of training software.

Imports `common`.
"""
