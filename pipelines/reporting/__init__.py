"""The report: one page of HTML on a published warehouse, self-contained, the same bytes for the same warehouse.

`report(store, folder)` writes `folder/index.html`. Nothing in it is fetched: style and script stand in the page and are the
only ones that its policy (CSP, by their hashes) lets run, so whatever a log says is text. It is as long for a hundred thousand
sessions as for a thousand: rows are aggregated in SQL (`figures.py`). Light and dark go by the reader's setting.

What it sees: the warehouse, and the manifests and audits that lie beside it. What it does not see: whether a number is good
enough; the gates say that (docs/pipeline.md).
"""

from __future__ import annotations

from pathlib import Path

from warehouse.store import Store

NAME = "index.html"


def report(store: Store, folder: Path, out: Path | None = None) -> Path:
    """Write the page on `store` into `folder`, and give its path.

    `out`: the folder that a run wrote, with `rewards/` and `environments/`; None: the one that the warehouse lies in.
    """
    from pipelines.reporting import of_sessions, of_tasks
    from pipelines.reporting.figures import identity, totals
    from pipelines.reporting.page import page

    beside = out or store.path.parent
    sections = [
        of_sessions.funnel(store), of_sessions.families(store), of_sessions.outcomes(store), of_tasks.difficulty(store),
        of_tasks.fidelity(store), of_tasks.audits(store, beside), of_tasks.splits(store), of_tasks.drift(store),
        of_sessions.left(store), of_tasks.unknowns(store, beside), of_tasks.built(store)]
    text = page(identity(store), totals(store), sections)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / NAME
    draft = target.with_name(f".{NAME}.draft")
    draft.write_text(text, "utf-8")
    draft.replace(target)
    return target
