"""Kernels on one device: FLOPs, bytes and the time of products, attention, scans, streams and optimizers.

May import `language`, `mathematics` and `sources`; knows nothing of networks, schedules or models.

Imports `language`, `mathematics`, `sources`.
"""
