"""What a run made, for people and for `--json`: the summary, and the coverage of the environments."""
