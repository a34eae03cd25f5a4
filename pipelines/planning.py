"""What a run would do, without doing it: which files it would read, which stages it would compute, and why.

Sees: the logs' names, sizes and times, the ledger, and what each stage was computed from. Does not see: what is in new files,
and whether they give other rows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pipelines import engine
from pipelines.ingesting import discovered
from pipelines.ledger import Ledger
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.errors import Missing
from warehouse.store import Store

_FIRST = "nothing was built here yet"


def plan(settings: Settings) -> dict[str, Any]:
    """{"files": {"new", "known", "n_bytes", "left": {reason: n}}, "reads": [paths], "stages": [{"stage", "would", "why"}]}.

    Raises InputError for what the settings name and is not there. Writes nothing, and takes no lock.
    """
    files, left = discovered(settings)
    reasons = dict(sorted(Counter(left["reason"]).items()))
    try:
        with Store.published(settings.warehouse) as store:
            ledger = Ledger(store, files)
            new = [file for file in files if not ledger.holds(file)]
            stages = _stages(store, settings, bool(new))
    except Missing:
        new, stages = files, [{"stage": stage.name, "would": "compute", "why": _FIRST} for stage in STAGES]
    return {
        "files": {"new": len(new), "known": len(files) - len(new), "n_bytes": sum(file.stamp().n_bytes for file in new),
                  "left": reasons},
        "reads": [file.relative for file in new], "stages": stages}


def _stages(store: Store, settings: Settings, is_new: bool) -> list[dict[str, str]]:
    """What would become of each stage; what stands on one that is computed may be computed too."""
    said: dict[str, dict[str, str]] = {}
    for stage in STAGES:
        above = next((name for name in stage.after if said[name]["would"] in ("compute", "check")), None)
        if stage.always:
            would, why = ("look", "it looks each time") if not is_new else ("compute", "there are files that it has not read")
            would, why = (would, why) if not stage.last else ("look", "it counts what the others left")
        elif changed := engine.why_computed(store, stage, settings):
            would, why = "compute", changed
        elif above:
            would, why = "check", f"{above} comes before it: it is computed where that gives other rows"
        else:
            would, why = "keep", "it was computed from the same"
        said[stage.name] = {"stage": stage.name, "would": would, "why": why}
    return list(said.values())
