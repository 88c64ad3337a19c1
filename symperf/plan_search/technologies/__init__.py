"""The best plan at each of many technologies, exactly, by branch and bound over blocks of them.

Imports `common`, `models`, `plan_search`, `plans`, `runs`, `systems`, `train`.
"""
