"""Personal data: the owner's key, encryption at rest, and the pseudonymisation of what is read."""
