"""The stage `company_rooms`: one environment of the whole company, with the tools of all its apps over one world.

In: what the stage `apps` stored, calls of agents, and tasks (`CompanyTask`: an instant, a person, what the person is asked).
Out: OUT/environments/company with the tasks whose reward holds, and OUT/unverified/company with the others: grading them gives
no score. Without any task that one is an open environment. Written aside and renamed into place, as the environments of
services are. Without exports the stage has nothing to do.
Does not see: what colleagues would say to what nobody asked them on record: they say nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from env_builder import bundle, image
from env_builder.audit import AuditReport, Depth
from env_builder.company.content import NAME, CompanyContent, company_app, company_content, descriptors
from env_builder.company.rooms import CompanyTask, shortened, unknown_people, write_company
from env_builder.runtime.environment import Environment
from env_builder.verify import verify
from pipelines import progress
from pipelines.building.company_tasks import tasks_of_work
from pipelines.building.decisions import replace_decisions
from pipelines.building.environments import move, names_of
from pipelines.inspection.company import stored_company
from pipelines.privacy import guard as privacy
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import CompanyRoomRow, Decision, frame
from warehouse.store import Store

STAGE = "company_rooms"
PUBLISHED, UNVERIFIED = "environments", "unverified"
"""Folders of OUT."""


def company_rooms(store: Store, settings: Settings) -> Counts:
    """Write the environment of the company whose exports were read, with the tasks of its people's work."""
    return publish_company(store, settings)


def publish_company(store: Store, settings: Settings, tasks: Sequence[CompanyTask] | None = None) -> Counts:
    """Verify tasks, and write the environment of those that hold and that of the others. None: those of people's work."""
    rows: list[CompanyRoomRow] = []
    decisions: list[Decision] = []
    others: list[pl.DataFrame] = []
    if store.count("core.versions"):
        company = stored_company(store)
        content = company_content(company.versions, company.calls, company.accounts, company.identities)
        if tasks is None:
            tasks, decisions = tasks_of_work(store, company, content, STAGE, settings.configured.company.goes_on)
        room = _CompanyRoom(environment_name(store), content, privacy.stated(store), settings)
        progress.tell(STAGE, 0, len(tasks), room.name)
        reasons = unknown_people(company_app(content), tasks)
        decisions += [Decision(stage=STAGE, subject=task_id, kept=False, reason="nobody_known", detail=f"{reason}.")
                      for task_id, reason in sorted(reasons.items())]
        rows, others = room.write([task for task in tasks if task.task_id not in reasons])
        decisions += [_decision(row) for row in rows]
        shutil.rmtree(room.draft, ignore_errors=True)
    _remove_others(store, settings, rows)
    replace_decisions(store, STAGE, pl.concat([frame(Decision, decisions), *others]))
    return {"n_company_rooms": store.replace("mart.company_rooms", frame(CompanyRoomRow, rows)),
            "n_company_published": sum(row.n_tasks for row in rows if row.folder == PUBLISHED)}


def hold(store: Store, settings: Settings) -> bool:
    """Whether the directories are as they were written, by what their manifests say."""
    return all(bundle.stands(Path(settings.out) / row["folder"] / row["environment"], row["content_digest"])
               and (row["folder"] != PUBLISHED or (settings.rewards / row["environment"] / "rewards.json").is_file())
               for row in store.table("mart.company_rooms").to_dicts())


def environment_name(store: Store) -> str:
    """Return the name of the company's environment: one that no service has."""
    services = store.read("select distinct service from core.sessions where service is not null order by all")["service"]
    names = {*names_of(services).values()}
    return next(name for number in range(1, len(names) + 2)
                if (name := NAME if number == 1 else f"{NAME}-{number}") not in names)


class _CompanyRoom(NamedTuple):
    """The environment as it is written."""

    name: str
    content: CompanyContent
    policy: str
    """Of privacy, as manifests state it."""
    settings: Settings

    @property
    def draft(self) -> Path:
        return Path(self.settings.out) / ".drafts" / f"{self.name} of a company"

    def write(self, tasks: Sequence[CompanyTask]) -> tuple[list[CompanyRoomRow], list[pl.DataFrame]]:
        """Return a row a directory, and decisions on the tasks."""
        shutil.rmtree(self.draft, ignore_errors=True)
        self.draft.mkdir(parents=True)
        graded, decisions, report = [task for task in tasks if task.is_graded], list[pl.DataFrame](), None
        holding: set[str] = set()
        if graded:
            self._written(graded, "whole")
            whole = Environment.load(self.draft / "whole", self.draft / "whole rewards")
            graded = [shortened(whole, task) for task in graded]
            self._written(graded, "tried")
            audit = self.settings.configured.audit
            verified = verify(self.draft / "tried", self.draft / "tried rewards", depth=Depth(
                mutants=audit.mutants, bad_below=audit.bad_below, good_from=audit.good_from))
            holding, report = {*verified.task_ids}, verified.report
            decisions.append(verified.decisions.with_columns(stage=pl.lit(STAGE)))
        rest = [task._replace(rubric=None, solution=()) for task in tasks if task.task_id not in holding]
        plain = [Decision(stage=STAGE, subject=task.task_id, kept=False, reason="no_rubric", detail="It has no rubric.")
                 for task in tasks if not task.is_graded]
        rows = []
        if holding:
            rows.append(self._publish([task for task in graded if task.task_id in holding], PUBLISHED, report))
        if rest or not holding:
            rows.append(self._publish(rest, UNVERIFIED, None))
        return rows, [*decisions, frame(Decision, plain)]

    def _written(self, tasks: Sequence[CompanyTask], folder: str, report: AuditReport | None = None) -> bundle.Digests:
        return write_company(self.name, self.content, tasks, self.draft / folder, self.draft / f"{folder} rewards",
                             privacy=self.policy, audit=report)

    def _publish(self, tasks: Sequence[CompanyTask], folder: str, report: AuditReport | None) -> CompanyRoomRow:
        """Write a directory with these tasks and move it into place, with an image of it if an engine is there."""
        digests, made = self._written(tasks, folder, report), image.ImageResult(None, None, "it was not asked for")
        if self.settings.image and folder == PUBLISHED:
            made = image.build(self.draft / folder, self.settings.base_image)
            bundle.note(self.draft / folder, image={"base": made.base, "image_id": made.image_id} if made.image_id else {
                "skip_reason": made.skip_reason or ""})
        if folder == PUBLISHED:
            move(self.draft / f"{folder} rewards", self.settings.rewards / self.name)
        move(self.draft / folder, Path(self.settings.out) / folder / self.name)
        return CompanyRoomRow(
            environment=self.name, folder=folder, content_digest=digests.content_digest,
            rewards_digest=digests.rewards_digest if folder == PUBLISHED else None, image_id=made.image_id,
            image_skip_reason=made.skip_reason, n_tasks=len(tasks), n_tools=len(descriptors(self.content)))


def _decision(row: CompanyRoomRow) -> Decision:
    if row.folder == PUBLISHED:
        return Decision(stage=STAGE, subject=row.environment, kept=True, reason="published",
                        detail=f"{row.n_tasks} tasks hold, with {row.n_tools} tools.")
    what = f"its {row.n_tasks} tasks have no verified reward" if row.n_tasks else "it has no task"
    return Decision(stage=STAGE, subject=row.environment, kept=False, reason="unverified",
                    detail=f"It has {row.n_tools} tools, and {what}: it is in OUT/{UNVERIFIED}.")


def _remove_others(store: Store, settings: Settings, rows: Sequence[CompanyRoomRow]) -> None:
    """Remove what an earlier run wrote and this one does not."""
    current = {(row.folder, row.environment) for row in rows}
    for row in store.table("mart.company_rooms").to_dicts():
        if (row["folder"], row["environment"]) not in current:
            shutil.rmtree(Path(settings.out) / row["folder"] / row["environment"], ignore_errors=True)
            if row["folder"] == PUBLISHED:
                shutil.rmtree(settings.rewards / row["environment"], ignore_errors=True)
