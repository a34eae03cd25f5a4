"""Forgetting a person: their data is found, deleted from everything that a run wrote, and skipped in later runs.

`identifiers` recognizes a person in texts, `finding` finds their data in a warehouse, `tables` deletes it there, `remembered`
keeps it out, `folders` and `releases` do the same for built files, `forgetting` is the whole procedure (docs/erasure.md).
"""
