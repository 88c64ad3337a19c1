"""The size of SymPy's cache, read once, when SymPy is imported: every room but the sources imports this first."""

import os
import sys

if "sympy" not in sys.modules and "SYMPY_CACHE_SIZE" not in os.environ:
    # SymPy remembers a thousand results of each of its functions unless told otherwise; one step has more.
    os.environ["SYMPY_CACHE_SIZE"] = "20000"
    import sympy  # noqa: F401

    del os.environ["SYMPY_CACHE_SIZE"]
