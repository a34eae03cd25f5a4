"""Run stages: when one is stale, memoised results, workers, memory, and faults that may pass."""
