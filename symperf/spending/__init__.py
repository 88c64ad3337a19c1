"""What a run spends: joules by resource, dollars and carbon dioxide, from the same schedule tree as its time.

Imports `common`, `infer`, `operations`, `plans`, `systems`, `train`.
"""
