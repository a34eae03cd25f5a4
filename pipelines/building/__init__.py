"""The work of each stage: tables, environments and datasets from what was read."""
