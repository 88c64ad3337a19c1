"""Mathematics that costs share: sums over the steps of a generation in closed form, and fractions that stay in bounds.

May import `language`.

Imports `language`.
"""
