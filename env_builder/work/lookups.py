"""stub"""
from __future__ import annotations
class LookupMemory:
    n_grounded = 0
    n_ids = 0
    def note(self, text: str) -> None: ...
def looks_before(episode, act, uses, memory, seen, induced):
    return []
