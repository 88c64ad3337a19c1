"""Technology: chips, voltage, links, energy, cost and carbon.

Imports `language`, `mathematics`, `sources`.
"""
