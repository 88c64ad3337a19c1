"""Technology: chips, voltage, links, energy, cost and carbon."""
