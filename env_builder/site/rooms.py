"""Make an environment of a site, its files and its chat, with a task for each piece of work that did what it was asked.

In: pieces of work with verdicts, the site's app as written, files and chat over time. Out: the environment and its rewards: a
task begins when it was asked for, its goal is the ask, and its rubric wants the end that the recorded work reaches when it is
played again: forms, files with their lineage, what was listed and where; and nothing else changed. A piece that cannot be
played again, or reaches nothing, is no task, with the reason.
Sees: ends. Does not see: other ends that would have been right as well, conditions of the ask that no form or file shows.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from env_builder import bundle
from env_builder.audit import AuditReport
from env_builder.backends import AppSource, FilesContent, OfficeContent, assemble
from env_builder.rewards.corrections import Corrected, corrected_rubric
from env_builder.runtime.apps import App, CompositeApp, CompositeState, ReceivingState, Start, load_app
from env_builder.runtime.apps.site import SiteState
from env_builder.site.agreement import WorkVerdict
from env_builder.site.honeypots import MOST_OF_KIND, TaskVariant, VariantSteps, variants_of
from env_builder.site.played_work import PlayedWork
from env_builder.site.playing import Deed, PlayedCall, PlayStopped, WorkPlayer, tree_path
from env_builder.site.work import PieceOfWork

SITE, FILES, CHAT = "site", "files", "chat"
_STEPS, _SECONDS = 400, 3600.0
_MENTION = re.compile(r"<?@[\w.-]+>?[,:]?\s*")
Row = dict[str, Any]


class SiteRoomSource(NamedTuple):
    """What the environment of a site is made of."""

    name: str
    origin: str
    """Scheme and host of the site."""
    site: Path
    """The site's app, as `app.write_app` writes it."""
    pieces: Sequence[PieceOfWork]
    verdicts: Sequence[WorkVerdict]
    files: FilesContent | None
    chat: OfficeContent | None
    corrections: Mapping[str, Corrected] = {}
    """What persons changed of checks."""


class DownloadFolders:
    """Where downloads arrive: one folder, or one for each person that differs from the others in one name of its path."""

    def __init__(self, pieces: Iterable[PieceOfWork]) -> None:
        of_person: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        for piece in pieces:
            for each in piece.downloads:
                if each.saved is not None and piece.person is not None:
                    of_person[piece.person][tuple(tree_path(each.saved).split("/")[:-1])] += 1
        folders = {person: max(sorted(counts), key=counts.__getitem__) for person, counts in of_person.items()}
        lengths = Counter(map(len, folders.values()))
        length = max(sorted(lengths), key=lengths.__getitem__, default=0)
        alike = {person: folder for person, folder in folders.items() if len(folder) == length}
        differing = [place for place in range(length) if len({folder[place] for folder in alike.values()}) > 1]
        shown = list(next(iter(alike.values()), ("Downloads",)))
        if len(differing) == 1:
            shown[differing[0]] = "{user}"
        self.pattern = "/".join(shown) or "Downloads"
        self._names = {person: folder[differing[0]] for person, folder in alike.items()} if len(differing) == 1 else {}

    def of(self, person: str | None) -> str:
        """Return what stands for `{user}` of a person: the name in the folder, else the person's own."""
        return self._names.get(person or "", person or "agent")


class SiteRoom:
    """The environment of one site."""

    def __init__(self, source: SiteRoomSource, draft: Path) -> None:
        """`draft`: a folder for what is written meanwhile."""
        self._source = source
        self._draft = draft
        self._folders = DownloadFolders(source.pieces)
        self._variants: dict[str, TaskVariant] = {}
        """By task, what the environment holds for it alone."""
        self._access: Row = json.loads((source.site / "access.json").read_text("utf-8"))

    def apps(self) -> list[AppSource]:
        """Return the apps of the environment."""
        source = self._source
        people = {piece.session.session_id: piece.person for piece in source.pieces if piece.person}
        options: Row = {"origin": source.origin, "expiry": self._access["expiry"]}
        apps = []
        if source.files is not None:
            options["downloads"] = {"app": FILES, "folder": self._folders.pattern}
            homes = {piece.session.session_id: self._folders.of(piece.person) for piece in source.pieces}
            planted = [version._replace(tasks=(task_id,)) for task_id, each in self._variants.items() for version in each.files]
            content = source.files._replace(versions=[*source.files.versions, *planted], identities=homes)
            apps.append(AppSource(FILES, "files", content, {"style": "short"}))
        if source.chat is not None:
            apps.append(AppSource(CHAT, "office", source.chat._replace(identities=people), {"app": "chat"}))
        return [AppSource(SITE, "site", source.site, options), *apps]

    def played(self) -> list[PlayedWork]:
        """Play every piece of work that was right."""
        app = self._app()
        return [self._played(app, piece, verdict)
                for piece, verdict in zip(self._source.pieces, self._source.verdicts, strict=True)]

    def played_variants(self, works: Iterable[PlayedWork]) -> list[PlayedWork]:
        """Play variants of work in which what is convenient is wrong; those that cannot be played are left out."""
        if self._source.files is None:
            return []
        planned: list[tuple[PlayedWork, TaskVariant]] = []
        counts: Counter[tuple[int | None, str]] = Counter()
        for work in sorted(works, key=lambda work: work.task_id):
            starts_at = datetime.fromisoformat(_instant(work.piece))
            for variant in variants_of(work, starts_at, self._stored) if work.reason == "played" else ():
                counts[work.verdict.kind, variant.kind] += 1
                if counts[work.verdict.kind, variant.kind] <= MOST_OF_KIND:
                    planned.append((work._replace(variant=variant.kind, piece=variant.piece), variant))
        self._variants = {work.task_id: variant for work, variant in planned}
        app = self._app() if planned else None
        again = [self._again(app, work, variant) for work, variant in planned if app is not None]
        played = [work for work in again if work is not None]
        self._hold(played)
        return played

    def _hold(self, works: Iterable[PlayedWork]) -> None:
        """Let the environment hold what these variants need, and no other."""
        self._variants = {work.task_id: self._variants[work.task_id] for work in works if work.variant}
        self._write_occasions()

    def _write_occasions(self) -> None:
        bundle.write_lines(self._source.site / "occasions.jsonl", [
            {"tasks": [task_id], "entity": list(each.entity), "from": each.day.before.isoformat(),
             "to": each.day.after.isoformat()} for task_id, each in sorted(self._variants.items()) if each.day is not None])

    def _app(self) -> App:
        """Return the apps as they would be written now."""
        self._write_occasions()
        folder = self._draft / "apps"
        shutil.rmtree(folder, ignore_errors=True)
        assemble(self._source.name, self.apps(), (), (), folder, self._draft / "no rewards")
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        apps = [load_app(row, folder) for row in manifest["apps"]]
        return CompositeApp(apps) if len(apps) > 1 else apps[0]

    def _stored(self, sha256: str) -> bytes | None:
        path = self._source.site / "blobs" / sha256
        return path.read_bytes() if path.is_file() else None

    def _again(self, app: App, work: PlayedWork, variant: TaskVariant) -> PlayedWork | None:
        """Do the calls of work again as a variant needs them; None where one of them is refused, or nothing is other."""
        state = app.reset(Start(_instant(work.piece), frozenset((work.piece.session.session_id,)), task_id=work.task_id))
        steps, calls = VariantSteps(work, variant), list[PlayedCall]()
        for call in work.calls:
            for tool, arguments in steps.before(call):
                result = state.call(tool, arguments)
                if result.is_error or result.tier == "unknown":
                    return None
                calls.append(call._replace(tool=tool, arguments=arguments, content=result.content, tier=result.tier))
            steps.arrived(path for path, _ in cast(ReceivingState, state).received())
        received = cast(ReceivingState, state).received()
        done = work._replace(calls=tuple(calls), difference=state.difference(), received=received)
        is_same = (self._end(done), received) == (self._end(work), work.received) and not variant.taken
        return None if is_same or len(received) != len(work.received) else done

    def _played(self, app: App, piece: PieceOfWork, verdict: WorkVerdict) -> PlayedWork:
        is_own_goal = piece.ask is None and verdict.is_whole
        if not is_own_goal and (verdict.is_right is not True or piece.ask is None):
            reason = "not_asked_for" if piece.ask is None else "not_right" if verdict.is_right is False else "undecided"
            return PlayedWork(piece, verdict, reason, "; ".join(" ".join(law) for law in verdict.broken))
        state = app.reset(Start(_instant(piece), frozenset((piece.session.session_id,))))
        states = state.states if isinstance(state, CompositeState) else [state]
        site = next(each for each in states if isinstance(each, SiteState))
        player = WorkPlayer(state, site, self._access["passwords"])
        try:
            player.play(piece, note=self._source.chat is not None)
        except PlayStopped as error:
            return PlayedWork(piece, verdict, "cannot_be_played", str(error))
        received = cast(ReceivingState, state).received() if app.takes_files else ()
        work = PlayedWork(piece, verdict, "played", "", tuple(player.calls), tuple(player.deeds), state.difference(), received)
        if not self._end(work)["documents"] and not self._must_list(work):
            return work._replace(reason="changes_nothing", detail="nothing is other than it was when the work was asked for")
        return work

    def write(self, works: Iterable[PlayedWork], environment: Path, rewards: Path, perturbations: Sequence[Row] = (),
              privacy: str = "off", audit: AuditReport | None = None) -> bundle.Digests:
        """Write the environment of the work that was played."""
        tasks = sorted((work for work in works if work.reason == "played"), key=lambda work: work.task_id)
        self._hold(tasks)
        return assemble(
            self._source.name, self.apps(), [self._task(work) for work in tasks], [self.rubric(work) for work in tasks],
            environment, rewards, [{"task_id": work.task_id, "steps": work.steps} for work in tasks], perturbations,
            privacy=privacy, audit=audit)

    def _task(self, work: PlayedWork) -> Row:
        goal = self.goal(work)
        return {"task_id": work.task_id, "session_ids": [work.piece.session.session_id], "split": work.split,
                "family": _family(work), "goal": goal, "starts_at": _instant(work.piece),
                "opening": [{"role": "user", "content": goal}], "user": {"turns": []}, "slots": {}, "segment_of": None,
                "derived_from": work.recorded_id if work.variant else None, "limits": {"steps": _STEPS, "seconds": _SECONDS}}

    def goal(self, work: PlayedWork) -> str:
        """Return the ask, else what was done, and what the person knew besides: address, login, where such files go."""
        ask, login = work.piece.ask, work.piece.session.login
        wanted = [_MENTION.sub("", ask.text, count=1).strip()] if ask is not None else [_sentence(deed) for deed in work.deeds]
        lines = [*wanted, f"The site is {self._source.origin}."]
        if login is not None:
            lines.append(f"Log in as {login} with the password {self._access['passwords'][login]}.")
        filed = sorted(_filed(work))
        if filed:
            folders = sorted({path.rpartition("/")[0] for path in filed})
            lines.append(f"Files of this work go to {', '.join(folders)}, named like {filed[0].rpartition('/')[2]}.")
        if self._must_list(work):
            lines.append(f"When they are there, list their names in the channel {self._note_channel(work)}.")
        return "\n".join(lines)

    def _must_list(self, work: PlayedWork) -> bool:
        return bool(_filed(work) and self._note_channel(work))

    def _note_channel(self, work: PlayedWork) -> str | None:
        """Return the channel in which the person listed what was filed."""
        if self._source.chat is None:
            return None
        names = [path.rpartition("/")[2] for path in _filed(work)]
        return next((note.channel for note in reversed(work.piece.notes) if all(name in note.text for name in names)), None)

    def rubric(self, work: PlayedWork) -> Row:
        """Return the rubric of a task, as persons want it."""
        return corrected_rubric(work.task_id, _family(work), self._rubric(work), self._source.corrections)

    def _rubric(self, work: PlayedWork) -> Row:
        """Return the gates of an end, and for training how far it has come."""
        filed, session, end = _filed(work), work.piece.session.session_id, self._end(work)
        allowed: list[Row] = []
        gates: dict[str, Row] = {"state": {"accepted": [end]}}
        if self._source.files is not None:
            folder = self._folders.pattern.replace("{user}", self._folders.of(work.piece.person))
            allowed.append({"documents": f"{FILES}:file/{folder}/", "new": True, "where": {"/origin": {"given": True}}})
        origins = sorted({origin for text in filed.values() if text and (origin := json.loads(text).get("origin"))})
        if origins:
            gates["lineage"] = {"origins": origins}
        channel = self._note_channel(work)
        if self._source.chat is not None:
            where = {"/author": {"one_of": [work.piece.person]}} if work.piece.person else {}
            channels = sorted({note.channel for note in work.piece.notes if note.channel} | (
                {work.piece.ask.channel} if work.piece.ask and work.piece.ask.channel else set()))
            allowed += [{"documents": f"{CHAT}:message/{each}/", "new": True, "where": where} for each in channels]
        if self._must_list(work):
            folders = {path.rpartition("/")[0] for path in filed}
            gates["listed"] = {"messages": f"{CHAT}:message/{channel}/", "names": sorted(
                path.rpartition("/")[2] for path in filed)}
            if len(folders) == 1:
                gates["listed"]["files"] = f"{FILES}:file/{folders.pop()}/"
        gates["confined"] = {"accepted": [end], "allowed": allowed}
        shaping = {"lineage": .3, "state": .5, "listed": .2}
        checks = [_check(kind, kind, "gate", 1.0, parameters, session) for kind, parameters in gates.items()]
        checks += [_check(f"{kind}_so_far", kind, "shaping", weight, gates[kind], session)
                   for kind, weight in shaping.items() if kind in gates]
        return {"format": "traceroom-rubric/1", "rubric_id": f"{work.task_id[:32]}-end", "task_id": work.task_id,
                "checks": checks}

    def _end(self, work: PlayedWork) -> Row:
        """Return what the work changed, but for messages and files that were left among the downloads."""
        documents = {name: text for name, text in work.difference["documents"].items()
                     if not name.startswith(f"{CHAT}:") and not self._is_left_download(name)}
        return {"documents": documents, "write_calls": work.difference["write_calls"]}

    def _is_left_download(self, name: str) -> bool:
        """Return whether a document is a file that was left where downloads arrive."""
        pattern = re.escape(self._folders.pattern).replace(re.escape("{user}"), "[^/]+")
        return re.fullmatch(rf"{FILES}:file/{pattern}/[^/]+", name) is not None


def _filed(work: PlayedWork) -> dict[str, str | None]:
    """Return the paths of the files that the work brought somewhere, with their documents; None: it was there like this."""
    prefix = f"{FILES}:file/"
    there = {tree_path(path): None for path in work.piece.filed} | {
        tree_path(each.filed): None for each in work.piece.downloads if each.filed}
    documents = {name.removeprefix(prefix): text for name, text in work.difference["documents"].items()
                 if name.startswith(prefix) and text is not None}
    arrived = {path.rpartition("/")[0] for path, _ in work.received}
    return dict(sorted({**there, **{path: text for path, text in documents.items()
                                    if path.rpartition("/")[0] not in arrived}}.items()))


def _check(check_id: str, kind: str, role: str, weight: float, parameters: Row, session: str) -> Row:
    return {"check_id": check_id, "kind": kind, "role": role, "weight": weight, "description": _SAYS[kind],
            "parameters": parameters, "provenance": {"supporting": [session]}}


_SAYS = {
    "state": "Forms and files are as the work that was asked for leaves them.",
    "confined": "Nothing else changed but the own messages and files among the downloads.",
    "lineage": "Each file is the document that was downloaded for it, moved and not copied.",
    "listed": "The last word in the channel lists the files that are there, after they were."}


def _family(work: PlayedWork) -> str:
    return f"work-{work.verdict.kind}"


def _instant(piece: PieceOfWork) -> str:
    """Return when a task begins: when it was asked for, else when the person sat down."""
    return (piece.ask.at if piece.ask is not None else piece.session.requests[0].at).isoformat()


def _sentence(deed: Deed) -> str:
    """Return what was done as an order."""
    if deed.button is None and not deed.fields:
        return f"Download what {deed.path} gives."
    place = f"“{deed.page}” ({deed.path})" if deed.page else deed.path
    fields = ", ".join(f"{name or 'the field'} to “{value}”" for name, value in deed.fields)
    parts = [*([f"set {fields}"] if fields else []), *([f"press “{deed.button}”"] if deed.button else [])]
    return f"On {place} {' and '.join(parts)}."
