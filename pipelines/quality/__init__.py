"""Rules that a warehouse must keep, and gates that a release must pass."""
