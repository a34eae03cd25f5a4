"""The report: one page of HTML on a published warehouse, self-contained, the same bytes for the same warehouse.

`report(store, folder)` writes `folder/index.html`. Nothing in it is fetched: style and script stand in the page and are the
only ones that its policy (CSP, by their hashes) lets run, so whatever a log says is text. It is as long for a hundred thousand
sessions as for a thousand: rows are aggregated in SQL (`inspection.views`). Light and dark follow the reader.

What it sees: the warehouse, and the manifests and audits next to it. What it does not see: whether a number is good
enough; the gates say that (docs/pipeline.md)."""

from __future__ import annotations

from pathlib import Path

from warehouse.permissions import private
from warehouse.store import Store

NAME = "index.html"


def report(store: Store, folder: Path, out: Path | None = None) -> Path:
    """Write the page on `store` into `folder`, and give its path. `out`: the folder that a run wrote, with `rewards/` and
    `environments/`; None: the one that the warehouse lies in."""
    from pipelines.inspection.views import StoreSource, identity, totals
    from pipelines.quality.precision import published_precision, sentence_on
    from pipelines.reporting import sections
    from pipelines.reporting.parts import page

    source = StoreSource(store)
    statement = sentence_on(*published_precision(store))
    run_folder = out or store.path.parent
    parts = [
        sections.funnel(source), sections.families(source), sections.outcomes(source), sections.difficulty(source),
        sections.fidelity(source), sections.audits(source, run_folder), sections.splits(source), sections.drift(source),
        sections.rejected(source), sections.unknowns(source, run_folder), sections.built(source, statement)]
    text = page(identity(source), totals(source), parts)
    target = folder / NAME
    draft = target.with_name(f".{NAME}.draft")
    with private():
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, "utf-8")
    draft.replace(target)
    return target
