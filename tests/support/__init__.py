"""What tests share: cases, strategies, oracles and simulators."""
