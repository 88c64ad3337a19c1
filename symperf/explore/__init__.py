"""The explorer: one file of HTML that holds the compiled programs of a model's structures, and answers offline.

Imports `book`, `common`, `derive`, `infer`, `models`, `operations`, `plans`, `runs`, `serve`, `spending`, `systems`,
`timeline`, `train`, `train.memory`, `train.step`.
"""
