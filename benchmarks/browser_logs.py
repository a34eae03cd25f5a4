"""Read what a server's log adds to a site's recorded pages. Used by browser_room.py.

The server's log of all sessions, held-out ones too, as a company has it: forms of sessions that nothing was learnt of are
writes that no page shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from browser_replay import SiteRequest

from env_builder.runtime.site.evidence import SiteEvidence
from env_builder.site.witnessing import unseen_writes
from extractors.inventory import SourceFile
from extractors.reading import read


def access_evidence(data: Path, recorded: Sequence[SiteRequest]) -> SiteEvidence:
    """Return the forms of the server's log that are none of these requests."""
    rows = [row for log in sorted((data / "logs" / "access").glob("*.log"))
            for row in read(SourceFile(log, log.name)).events.iter_rows(named=True) if row["kind"] == "request"]
    return SiteEvidence((), unseen_writes(rows, [(each.at, each.method, each.url) for each in recorded]))
