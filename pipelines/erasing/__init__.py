"""Forgetting a person: what is theirs is found, taken out of everything that a run wrote, and not read again.

`identifiers` says how somebody is recognized in texts, `finding` what is theirs in a warehouse, `tables` takes it out of there,
`remembered` keeps it out, `folders` and `releases` do the same for what was built, `forgetting` puts all in order
(docs/erasure.md).
"""
