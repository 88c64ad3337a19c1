"""The explorer: one file of HTML that holds the compiled programs of a model's structures, and answers offline.

Imports `book`, `common`, `infer`, `models`, `operations`, `plans`, `runs`, `spending`, `systems`, `train`.
"""
