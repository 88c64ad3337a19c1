"""The cost language and the formulas written in it; imports nothing but SymPy."""
