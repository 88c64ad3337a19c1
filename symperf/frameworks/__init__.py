"""Training configurations of frameworks, read into a model, a plan and a profile.

Imports `common`, `export`, `models`, `plans`, `systems`.
"""
