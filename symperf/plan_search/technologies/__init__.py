"""The best plan at each of many technologies, exactly, by branch and bound over blocks of them.

Imports `plan_search` and what that imports.
"""
