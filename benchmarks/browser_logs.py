"""What a server's log and changes of rows tell of a site beside its recorded pages. Used by browser_room.py.

The server's log of all sessions, held-out ones too, as a company has it: forms of sessions that nothing was learnt of are
writes that no page shows. Changes of rows are in no log here, so those of `truth/sessions.jsonl` stand for a change stream,
dated at the end of the session that made them; a second track, which says nothing of what logs alone give.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from browser_replay import SiteRequest

from env_builder.runtime.site.evidence import SiteEvidence
from env_builder.site.witnessing import changed_rows, unseen_writes
from extractors.inventory import SourceFile
from extractors.reading import read


def access_evidence(data: Path, recorded: Sequence[SiteRequest]) -> SiteEvidence:
    """Return the forms of the server's log that are none of these requests."""
    rows = [row for log in sorted((data / "logs" / "access").glob("*.log"))
            for row in read(SourceFile(log, log.name)).events.iter_rows(named=True) if row["kind"] == "request"]
    return SiteEvidence((), unseen_writes(rows, [(each.at, each.method, each.url) for each in recorded]))


def row_evidence(data: Path) -> SiteEvidence:
    """Return the rows that sessions changed, each as it was from the session's end on."""
    changes = []
    for line in (data / "truth" / "sessions.jsonl").read_text("utf-8").splitlines():
        session = json.loads(line)
        changes += [{"happened_at": datetime.fromisoformat(session["ended_at"]), "table_name": row["table"], "key": row["key"],
                     "before": json.dumps(row["before"]), "after": json.dumps(row["after"])}
                    for row in session.get("rows_changed") or ()]
    return SiteEvidence(changed_rows(sorted(changes, key=lambda each: each["happened_at"])))
