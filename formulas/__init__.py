"""The cost language and the formulas written in it; imports nothing but SymPy, and the sources not even that."""
