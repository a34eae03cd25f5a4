"""The stage `site_rooms`: an environment of each web site, with the files and the chat of the people who work with it.

Pages and forms of a site are no calls of tools: its sessions are work of people, joined with what was asked for and filed. A
task is published if it holds (`env_builder.verify`). Written aside and renamed into place among the environments of services.
Without recorded pages the stage has nothing to do.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder import bundle
from env_builder.backends import FilesContent, OfficeContent
from env_builder.office.audited_files import PageDownload, file_history
from env_builder.office.chats import chat_history
from env_builder.rewards.corrections import Corrections, corrections_of, decisions_on
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.office.chat import MESSAGE
from env_builder.runtime.site.evidence import SiteEvidence
from env_builder.site.agreement import WorkKinds, WorkVerdict
from env_builder.site.app import LearntSite, SiteContent, write_app
from env_builder.site.perturbing import perturbations_of_pages
from env_builder.site.played_work import PlayedWork
from env_builder.site.ports import SitePorts, port_of
from env_builder.site.recorded import PageSession, page_sessions
from env_builder.site.rooms import SiteRoom, SiteRoomSource
from env_builder.site.ui_elements import UiElements, ui_events
from env_builder.site.witnessing import changed_rows, unseen_writes
from env_builder.site.work import ChatMessage, FileEvent, PieceOfWork, SiteWork, asked_values
from env_builder.verify import Verified, verify
from extractors.privacy.credentials import is_credential
from extractors.routes import templates
from pipelines import progress
from pipelines.building.decisions import corrections_of_kind, replace_decisions
from pipelines.building.environments import move, names_of
from pipelines.privacy import guard as privacy
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.errors import Unavailable
from warehouse.records import Decision, SiteRoomRow, SiteStepRow, SiteWorkRow, frame
from warehouse.store import Store

STAGE = "site_rooms"
_HASHED = re.compile(r"([0-9a-f]{64})(\.\w+)?")
_PAGES = """
    select * from core.events where kind in ('page', 'request') and service is not null and service in (
        select service from core.events where kind = 'page' and json_extract_string(value, '$.type') = 'text/html')
    order by service, happened_at, event_id"""
_SHEETS = """
    select service, content, max(json_extract_string(value, '$.body')) from core.events
    where kind = 'log' and json_extract_string(value, '$.type') = 'text/css' and content is not null and service is not null
    group by service, content order by service, content"""
_INTERFACE = """
    select happened_at, tool, name, arguments from core.events
    where kind = 'business' and json_extract_string(arguments, '$.xpath') is not null order by happened_at, event_id"""
_ACCESSES = """
    select happened_at, tool, value, service from core.events
    where kind = 'request' and format in ('access_log', 'aws_elb') order by happened_at, event_id"""
_CHANGES = """
    select happened_at, table_name, key, before, after from core.row_changes order by happened_at, change_id"""
_OF_FORMAT = "select * from core.events where format = $format order by happened_at, position, event_id"


def site_rooms(store: Store, settings: Settings) -> Counts:
    """Learn each site, judge the work of its people, and write an environment of the tasks that hold."""
    rows = _SiteRows()
    pages = store.read(_PAGES)
    if pages.height:
        office = OfficeLogs(store.read(_OF_FORMAT, format="slack"), store.read(_OF_FORMAT, format="file_audit"),
                            store.read(_INTERFACE), stored_files(settings))
        gap = timedelta(minutes=settings.configured.sessions.gap_minutes)
        sites = SitePorts(pages.iter_rows(named=True))
        sessions = page_sessions(pages.iter_rows(named=True), gap, sites)
        of_pages = pl.Series([sites.site(row) for row in pages.iter_rows(named=True)], dtype=pl.String)
        hosts = sorted({session.host for session in sessions})
        names = names_of(hosts)
        corrections = corrections_of(corrections_of_kind(store, "check"))
        other_logs = LogsBeside(store.read(_ACCESSES), store.read(_CHANGES), len(hosts) == 1)
        for host in hosts:
            own = [session for session in sessions if session.host == host]
            sheets = {url: text for service, url, text in store.read(_SHEETS).iter_rows()
                      if sites.named(service, port_of(url)) == host}
            measured = perturbations_of_pages(pages.filter(of_pages == host))
            try:
                logs = SiteLogs(host, f"site-{names[host]}", own, sheets, measured, privacy.stated(store), corrections, sites,
                                other_logs.evidence(host, own))
                rows.add(logs, office, settings)
            except Unavailable as error:
                progress.warn(STAGE, f"{host}: {error}")
                rows.decisions.append(Decision(stage=STAGE, subject=host, kept=False, reason="no_parser", detail=f"{error}."))
    for name in set(store.table("mart.site_rooms")["environment"]) - {row.environment for row in rows.rooms}:
        shutil.rmtree(settings.environments / name, ignore_errors=True)
        shutil.rmtree(settings.rewards / name, ignore_errors=True)
    counts = {"n_site_rooms": store.replace("mart.site_rooms", frame(SiteRoomRow, rows.rooms)),
              "n_site_work": store.replace("mart.site_work", frame(SiteWorkRow, rows.work)),
              "n_site_steps": store.replace("mart.site_steps", frame(SiteStepRow, rows.steps)),
              "n_site_published": sum(row.n_tasks for row in rows.rooms)}
    replace_decisions(store, STAGE, pl.concat([frame(Decision, rows.decisions), *rows.others]))
    return counts


def hold(store: Store, settings: Settings) -> bool:
    """Whether the directories are as they were written, by what their manifests say."""
    return all(bundle.stands(settings.environments / row["environment"], row["content_digest"])
               and (settings.rewards / row["environment"] / "rewards.json").is_file()
               for row in store.table("mart.site_rooms").to_dicts())


def stored_files(settings: Settings) -> Callable[[str], bytes | None]:
    """Return the function that gives the bytes of files that are stored with the logs under their hashes."""
    paths: dict[str, Path] = {}
    roots = settings.logs or [path for source in settings.configured.sources for path in source.paths]
    for folder in map(Path, roots):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if (match := _HASHED.fullmatch(path.name)) is not None and path.is_file():
                paths.setdefault(match[1], path)

    def stored(sha256: str) -> bytes | None:
        content = paths[sha256].read_bytes() if sha256 in paths else None
        return content if content is not None and digest(content) == sha256 else None

    return stored


class OfficeLogs(NamedTuple):
    """Events of files and of a chat."""

    chat: pl.DataFrame
    """Events of the format `slack`."""
    files: pl.DataFrame
    """Events of the format `file_audit`."""
    interface: pl.DataFrame
    """Events about elements of pages."""
    stored: Callable[[str], bytes | None]

    def messages(self, content: OfficeContent) -> list[ChatMessage]:
        """Return the messages of a chat as they were first written."""
        first: dict[str, ChatMessage] = {}
        for version in content.versions:
            value = version.value
            if version.kind == MESSAGE and value["text"] is not None and value["author"] and version.since:
                first.setdefault(version.key, ChatMessage(
                    version.key, datetime.fromisoformat(version.since), value["channel"], value["author"], value["text"],
                    value["thread"]))
        return list(first.values())

    def file_events(self) -> Iterator[FileEvent]:
        """Yield what happened to files."""
        for row in self.files.iter_rows(named=True):
            facts = json.loads(row["arguments"] or "{}")
            if row["happened_at"] is not None and isinstance(facts.get("path"), str):
                yield FileEvent(row["happened_at"], row["name"] or "", str(facts.get("operation")), facts["path"],
                                facts.get("to"), facts.get("sha256"))


class SiteLogs(NamedTuple):
    """What logs tell of one site."""

    host: str
    name: str
    """Of its environment."""
    sessions: list[PageSession]
    sheets: dict[str, str]
    """Address -> text of a style sheet."""
    perturbations: list[dict[str, Any]]
    privacy: str
    """As manifests state it."""
    corrections: Corrections
    """What persons changed of checks."""
    sites: SitePorts
    """Which ports of the host are this site."""
    evidence: SiteEvidence | None = None
    """What other logs tell of it."""


class LogsBeside(NamedTuple):
    """Logs of servers and databases that come with recorded pages."""

    accesses: pl.DataFrame
    changes: pl.DataFrame
    is_one_site: bool
    """Whether there is one site alone, so that logs that name no host are its own; changes of rows never name one."""

    def evidence(self, host: str, sessions: list[PageSession]) -> SiteEvidence | None:
        """Return what the logs tell of a site, None for nothing."""
        accesses = [row for row in self.accesses.iter_rows(named=True)
                    if row["service"] == host or (self.is_one_site and row["service"] is None)]
        recorded = [(each.at, each.method, each.url) for session in sessions for each in session.requests]
        changes = changed_rows(self.changes.iter_rows(named=True), is_credential) if self.is_one_site else []
        evidence = SiteEvidence(changes, unseen_writes(accesses, recorded))
        return evidence or None


class _SiteRows:
    """The rows of the stage's tables."""

    def __init__(self) -> None:
        self.rooms: list[SiteRoomRow] = []
        self.work: list[SiteWorkRow] = []
        self.steps: list[SiteStepRow] = []
        self.decisions: list[Decision] = []
        self.others: list[pl.DataFrame] = []
        """Decisions on events of chats and files."""

    def add(self, logs: SiteLogs, office: OfficeLogs, settings: Settings) -> None:
        """Add a site with its sessions. Errors: Unavailable where pages cannot be parsed here."""
        host, name, sessions, sheets, measured, policy, corrections, sites, evidence = logs
        progress.tell(STAGE, 0, len(sessions), host)
        draft = Path(settings.out) / ".drafts" / name
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        paths = templates([request.path for session in sessions for request in session.requests])
        site = LearntSite(sessions, {path: template for path, (template, _) in paths.items()})
        chat = chat_history(office.chat) if office.chat.height else None
        messages, events = office.messages(chat.content) if chat else [], list(office.file_events())
        work = SiteWork(site.routes, site.laws, messages, events)
        pieces = work.pieces(site.sessions)
        verdicts = WorkKinds(pieces).verdicts()
        files = self._files(pieces, office)
        if chat is not None:
            self.others.append(chat.decisions.with_columns(stage=pl.lit(STAGE)))
        hashes = {(piece.session.session_id, each.request_index): each.sha256 for piece in pieces for each in piece.downloads
                  if each.sha256 is not None}
        tasks = frozenset(piece.session.session_id for piece, verdict in zip(pieces, verdicts, strict=True)
                          if (verdict.is_right if piece.ask is not None else verdict.is_whole))
        write_app(draft / "site", SiteContent(
            site.sessions, site.templates, tasks, hashes, office.stored, sheets, [each.text for each in messages],
            sorted({each.channel for each in messages if each.channel} | {
                path.rpartition("/")[0] for event in events for path in (event.path, event.to) if path}), asked_values(pieces),
            evidence))
        room = SiteRoom(SiteRoomSource(name, sessions[0].origin, draft / "site", pieces, verdicts, files,
                                       chat.content if chat is not None else None, corrections), draft)
        played = room.played()
        variants = room.played_variants(played)
        verified = self._verified(room, [*played, *variants], draft, policy)
        holding = set(verified.task_ids) if verified is not None else set()
        holding -= {each.task_id for each in variants if each.recorded_id not in holding}
        n_tasks = len(holding.intersection(each.task_id for each in played))
        self._note(host, pieces, verdicts, played, holding)
        if corrections:
            self.others.append(_decisions_on(corrections, room, [*played, *variants]))
        elements = UiElements(ui_events(office.interface.iter_rows(named=True), host, sites), site.sessions)
        self.steps += [row for work in played if work.calls for row in _steps(host, work, room.goal(work), elements)]
        if verified is not None and holding:
            digests = room.write([each for each in [*played, *variants] if each.task_id in holding], draft / "environment",
                                 draft / "rewards", measured, policy, verified.report)
            move(draft / "rewards", settings.rewards / name)
            move(draft / "environment", settings.environments / name)
            self.rooms.append(SiteRoomRow(environment=name, host=host, content_digest=digests.content_digest,
                                          rewards_digest=digests.rewards_digest, n_tasks=len(holding)))
        self.decisions.append(Decision(
            stage=STAGE, subject=name, kept=bool(holding), reason="published" if holding else "no_task_holds",
            detail=f"{n_tasks} of {len(sessions)} sessions of {host} became tasks, with {len(holding) - n_tasks} variants."))
        shutil.rmtree(draft, ignore_errors=True)

    def _files(self, pieces: list[PieceOfWork], office: OfficeLogs) -> FilesContent | None:
        if not office.files.height:
            return None
        downloads = [PageDownload(piece.session.requests[each.request_index].at, piece.person,
                                  piece.session.requests[each.request_index].url, each.file.name)
                     for piece in pieces for each in piece.downloads]
        history = file_history(office.files, office.stored, downloads)
        self.others.append(history.decisions.with_columns(stage=pl.lit(STAGE)))
        return FilesContent(history.versions)

    def _verified(self, room: SiteRoom, played: list[PlayedWork], draft: Path, policy: str) -> Verified | None:
        """Play against the tasks, each with a decision; None without tasks."""
        if not any(each.reason == "played" for each in played):
            return None
        room.write(played, draft / "tried", draft / "tried rewards", (), policy)
        verified = verify(draft / "tried", draft / "tried rewards")
        self.others.append(verified.decisions.with_columns(stage=pl.lit(STAGE)))
        return verified

    def _note(self, host: str, pieces: list[PieceOfWork], verdicts: list[WorkVerdict], played: list[PlayedWork],
              holding: set[str]) -> None:
        for piece, verdict, work in zip(pieces, verdicts, played, strict=True):
            is_task = work.reason == "played"
            self.work.append(SiteWorkRow(
                session_id=piece.session.session_id, host=host, person=piece.person,
                ask=piece.ask.text if piece.ask is not None else None,
                asked_by=piece.ask.author if piece.ask is not None else None, kind=verdict.kind, is_right=verdict.is_right,
                broken=["; ".join(law) for law in verdict.broken], complaint=verdict.complaint,
                task_id=work.task_id if work.task_id in holding else None))
            if not is_task:
                detail = f"{work.detail or 'nothing tells how it went'}."
                self.decisions.append(Decision(stage=STAGE, subject=piece.session.session_id, kept=False, reason=work.reason,
                                               detail=detail))


def _decisions_on(corrections: Corrections, room: SiteRoom, works: list[PlayedWork]) -> pl.DataFrame:
    """Return what became of the corrections of this site's checks."""
    rows = [(each.task_id, canonical(room.rubric(each)["checks"])) for each in works if each.reason == "played"]
    rubrics = pl.DataFrame(rows, schema=["task_id", "checks"], orient="row")
    return decisions_on(corrections, rubrics).filter(pl.col("reason") != "no_such_check").with_columns(stage=pl.lit(STAGE))


def _steps(host: str, work: PlayedWork, goal: str, elements: UiElements) -> Iterator[SiteStepRow]:
    """Yield what somebody did right, call by call."""
    for position, (call, element) in enumerate(zip(work.calls, elements.elements(work), strict=True)):
        yield SiteStepRow(
            session_id=work.piece.session.session_id, host=host, position=position, task_id=work.task_id, split=work.split,
            goal=goal, happened_at=call.at, tool=call.tool, arguments=canonical(call.arguments), content=call.content,
            is_error=call.is_error, tier=call.tier, observation=call.observation, candidates=canonical([
                {"ref": item.ref, "role": item.role, "name": item.name, "positive": item.is_target} for item in call.items]),
            element=canonical(element) if element is not None else None)
