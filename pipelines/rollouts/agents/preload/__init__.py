"""Files that an agent's own interpreter loads: standard library only, nothing of ours besides each other."""
