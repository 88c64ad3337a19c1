"""A compiler from SymPy expressions to flat programs and their back ends; it knows nothing of language models."""
