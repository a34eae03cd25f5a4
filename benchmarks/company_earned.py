"""Measure how many tasks of a company's work an agent could earn in the environment that a run writes.

    python benchmarks/company_earned.py ../shared/data/company [--goes-on]

With `--goes-on` others' work goes on in the episodes.
Prints one JSON object on the last line. `tasks_with_tools`: tasks that the tools can do; `tasks_earned`: those whose own known
solution earns 1 in the environment; `tasks_with_colleagues`: those in which somebody answers; `tasks_published`: those that
hold in the audit as well, with `not_published` by reason. `company_work.py` prints the same as `in_environment`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from env_builder.company.content import CompanyContent, company_content
from env_builder.company.rooms import CompanyTask, shortened, worth, write_company
from env_builder.people import find_people
from env_builder.runtime.company import CompanyWorld
from env_builder.runtime.environment import Environment
from env_builder.runtime.rubrics import ParsedRubric
from env_builder.verify import verify
from env_builder.work.demonstrations import DemonstrationFinder
from env_builder.work.publishing import VerifiedWork, WorkDecision, WorkRoom
from env_builder.work.solving import solved_tasks
from extractors.apps import record_kinds
from extractors.work.finding import find_work
from pipelines.inspection.company import read_company, recorded_calls_of
from pipelines.settings import Settings


def earned_figures(room: WorkRoom, works: Sequence[VerifiedWork], content: CompanyContent,
                   goes_on: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """Return the figures of tasks that hold on record, written as an environment and played. `goes_on`: as `solved_tasks`."""
    kinds = [kind for each in record_kinds().values() for kind in each]
    solved = list(solved_tasks(room, DemonstrationFinder(content, room.events, kinds), works, goes_on=goes_on))
    tasks = [each for each in solved if isinstance(each, CompanyTask)]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_company("company", content, tasks, folder / "whole", folder / "whole rewards")
        environment = Environment.load(folder / "whole", folder / "whole rewards")
        tasks = [shortened(environment, task) for task in tasks]
        earned = [worth(environment, task.task_id, ParsedRubric.read(dict(task.rubric or {})), task.solution) for task in tasks]
        write_company("company", content, tasks, folder / "tried", folder / "tried rewards")
        verified = verify(folder / "tried", folder / "tried rewards")
    reasons = Counter(row["reason"] for row in verified.decisions.to_dicts() if not row["kept"])
    reasons.update(each.reason for each in solved if isinstance(each, WorkDecision))
    return {"tasks_with_tools": len(tasks), "tasks_earned": earned.count(1.0),
            "tasks_with_colleagues": sum(task.colleagues is not None for task in tasks),
            "tasks_published": len(verified.task_ids), "not_published": dict(reasons.most_common())}


def main(folder: Path, goes_on: bool) -> None:
    """Measure and print."""
    settings = Settings(logs=(str(folder / "exports"),), out="out")
    company = read_company(settings)
    accounts = {person.address: person.accounts for person in find_people(CompanyWorld(company.versions).at(2**61))}
    work = find_work(company.versions, accounts)
    room = WorkRoom(CompanyWorld(company.versions), work.events, record_kinds(), accounts)
    content = company_content(company.versions, recorded_calls_of(settings, company), accounts, {})
    print(json.dumps(earned_figures(room, room.publish(work.items).verified, content,
                                    {item.item_id: item.refs for item in work.items} if goes_on else None)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--goes-on" in sys.argv[2:])
