"""The search of plans for inference: within latency limits, of one batch, or with prefill and decode apart.

Imports `analysis`, `common`, `infer`, `models`, `plan_search`, `plans`, `runs`, `serve`, `spending`,
`systems`.
"""
