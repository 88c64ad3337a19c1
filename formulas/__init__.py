"""The cost language and the formulas written in it; imports nothing but SymPy."""

import os
import sys

if "sympy" not in sys.modules and "SYMPY_CACHE_SIZE" not in os.environ:
    # SymPy remembers a thousand results of each of its functions, read once, when it is imported; one step has more.
    os.environ["SYMPY_CACHE_SIZE"] = "20000"
    import sympy  # noqa: F401

    del os.environ["SYMPY_CACHE_SIZE"]
