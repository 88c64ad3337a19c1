"""Generation and serving: decode steps, caches, queues, speculation, disaggregation."""
