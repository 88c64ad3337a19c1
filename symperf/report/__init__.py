"""What a person reads: tables in the terminal, and the JSON of the public contract.

Imports `analysis`, `common`, `evaluation`, `infer`, `models`, `pictures`, `plan_search`, `plan_search.inference`,
`plans`, `runs`, `serve`, `spending`, `sweep`, `systems`, `train`.
"""
