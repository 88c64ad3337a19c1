"""Mathematics that costs share: sums over the steps of a generation in closed form, and fractions that stay in bounds.

Imports `language`.
"""
