"""A registry of releases: what was made, which of them is promoted, and who promoted it.

    objects/ab/abcd…        each content once, by its sha256, for all releases
    <id>/manifest.json      what the release is; its sha256 is the id
    <id>/files.jsonl        {"path", "sha256", "n_bytes"} of every file; in a folder the files are next to it, as links
    <id>/withdrawn.json     only of a yanked one: {"format", "release", "at", "by", "why"}, and the content is gone
    current                 id of the promoted release
    promotions.jsonl        {"at", "by", "from", "to", "why"} a line, oldest first
    pins.json               {name: id}: what garbage collection keeps

A release exists once its folder (its manifest in a bucket) does; promoting swaps `current`, whole or not at all, and only from
what the caller read. Sees: bytes. Does not see: whether a release should be promoted (pipelines/quality/gates.py).

Garbage collection removes old releases by policy, then contents that no release has. It keeps the promoted release, pinned ones
and the `keep` that were promoted last. A release that was never promoted stays for `days`; so do contents that no release
names, for a writer that is about to name them. A yanked release keeps its manifest and its tombstone.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NotRequired, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter
from typing_extensions import TypedDict

from env_builder.runtime.canonical import canonical, digest
from pipelines.releases.storage import Entry, open_storage
from pipelines.settings import account_name
from warehouse.errors import MOST, InputError, Missing, Overtaken, ReleaseBroken

FORMAT = "traceroom-release/1"
WITHDRAWN = "traceroom-withdrawn/1"
GRACE_S = 7 * 24 * 3600.0
"""How long contents that no release names are kept, for a writer that is about to name them."""
KEEP = 10
"""Promoted releases that are kept, the promoted one among them."""
DAYS = 7.0
"""Days for which what no release or pin names is kept."""
_CURRENT, _LOG, _PINS, _OBJECTS = "current", "promotions.jsonl", "pins.json", "objects"
_MANIFEST, _FILES, _TOMBSTONE = "manifest.json", "files.jsonl", "withdrawn.json"


class ReleaseFile(NamedTuple):
    """A file of a release."""

    path: str
    sha256: str
    n_bytes: int


class Source(NamedTuple):
    """A file that goes into a release."""

    path: Path
    sha256: str
    n_bytes: int


def source(path: Path) -> Source:
    """Read a file as it is now. Raises OSError."""
    return Source(path, _sha256(path), path.stat().st_size)


class ListedRelease(NamedTuple):
    """A release in the registry."""

    release: str
    state: str
    """promoted, earlier (it was promoted before), waiting (never promoted), withdrawn, broken."""
    promoted_at: str | None
    """When it was promoted last."""
    pins: list[str]
    manifest: dict[str, Any]
    """{} of a broken one."""


class Collected(NamedTuple):
    """What was removed, or would be."""

    releases: list[str]
    n_objects: int
    n_bytes: int
    """Of the objects."""


_Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
_LONGEST_PATH, _LONGEST_NAME = 1_000, 255
"""Characters of a path in a release, bytes of a name in it."""


class _FileLine(TypedDict):
    """A line of a list of files."""

    path: str
    sha256: _Digest
    n_bytes: Annotated[int, Field(ge=0)]


class _YankNote(TypedDict):
    """Who withdrew a release, and why."""

    at: str
    by: str
    why: str
    format: NotRequired[str]
    release: NotRequired[str]
    instead: NotRequired[str | None]
    manifest: NotRequired[str]


def _with_names(rows: list[dict[str, str | None]]) -> list[dict[str, str | None]]:
    if any(not {"at", "by", "from", "to", "why"} <= row.keys() for row in rows):
        raise ValueError("a promotion has no release")
    return rows


PROMOTIONS: TypeAdapter[list[dict[str, Any]]] = TypeAdapter(
    Annotated[list[dict[str, str | None]], AfterValidator(_with_names)])
PINS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
MANIFEST: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
FILES: TypeAdapter[list[_FileLine]] = TypeAdapter(list[_FileLine])
TOMBSTONE: TypeAdapter[_YankNote] = TypeAdapter(_YankNote)
T = TypeVar("T")


class Registry:
    """The releases at an address: a folder, or an `s3://`, `gs://` or `az://` prefix."""

    def __init__(self, address: str) -> None:
        self.storage = open_storage(address)
        self.where = self.storage.address

    def current(self) -> str | None:
        """Id of the promoted release, None where none is."""
        return (self.storage.read(_CURRENT) or b"").decode("utf-8", "replace").strip() or None

    def promotions(self) -> list[dict[str, Any]]:
        """List promotions, oldest first: {"at", "by", "from", "to", "why"}."""
        return self._paper(_LOG, PROMOTIONS, b"[" + b",".join((self.storage.read(_LOG) or b"").splitlines()) + b"]")

    def pins(self) -> dict[str, str]:
        """Name -> id of a release that garbage collection keeps."""
        return self._paper(_PINS, PINS, self.storage.read(_PINS) or b"{}")

    def ids(self) -> list[str]:
        """Ids of all releases, withdrawn ones too, sorted."""
        return sorted({name.split("/")[0] for name in self.storage.names("")
                       if name.startswith("r-") and name.endswith(f"/{_MANIFEST}") and name.count("/") == 1})

    def listed(self) -> list[ListedRelease]:
        """All releases; the last promoted first, then those that wait, by id."""
        at = {row["to"]: (n, row["at"]) for n, row in enumerate(self.promotions(), 1) if row["to"]}
        current, pins = self.current(), self.pins()
        rows = []
        for release in self.ids():
            state = ("withdrawn" if self.tombstone(release) else "promoted" if release == current
                     else "earlier" if release in at else "waiting")
            try:
                manifest = self.manifest(release)
            except ReleaseBroken:
                state, manifest = "broken", {}
            rows.append(ListedRelease(release, state, at[release][1] if release in at else None,
                                sorted(name for name, pinned in pins.items() if pinned == release), manifest))
        return sorted(rows, key=lambda each: (-at.get(each.release, (0, ""))[0], each.release))

    def named(self, name: str) -> str:
        """Resolve a name to an id: `current`, a pin, an id or the beginning of one. Raises Missing."""
        release_ids = self.ids()
        if name == _CURRENT:
            if current := self.current():
                return current
            able = [release for release in release_ids if not self.tombstone(release)]
            raise Missing("nothing is promoted, so there is no release 'current'", self.where,
                          f"promote one of {', '.join(able[:MOST])} with: traceroom release --approve ID" if able else
                          "make a release with: traceroom release")
        name = self.pins().get(name, name)
        matches = [release for release in release_ids if release.startswith(name)] if len(name) > 3 else []
        if len(matches) == 1 or name in matches:
            return name if name in matches else matches[0]
        raise Missing.named("release", name, [*release_ids, *self.pins()], f"they are those of {self.where}")

    def manifest(self, release: str) -> dict[str, Any]:
        """Read what a release is. Raises Missing, and ReleaseBroken where it is not what its id says."""
        content = self.storage.read(f"{release}/{_MANIFEST}")
        if content is None:
            raise Missing.named("release", release, self.ids())
        if release_id(content) != release:
            raise self._broken(release, "its manifest is not the one that it was made with")
        return self._paper(f"{release}/{_MANIFEST}", MANIFEST, content)

    def files(self, release: str) -> list[ReleaseFile]:
        """Files of a release, by path. Raises as `manifest`."""
        manifest, content = self.manifest(release), self.storage.read(f"{release}/{_FILES}")
        if content is None or digest(content) != manifest["files"]:
            raise self._broken(release, "its list of files is not the one that it was made with")
        rows = self._paper(f"{release}/{_FILES}", FILES, b"[" + b",".join(content.splitlines()) + b"]")
        files = [ReleaseFile(**row) for row in rows]
        strange = next((each.path for each in files if not _is_plain(each.path)), None)
        if strange is not None:
            raise self._broken(release, f"it has a file {strange[:100]!r}, which is no path below it")
        return files

    def rows(self, release: str, path: str) -> list[dict[str, Any]]:
        """Rows of a file of JSON lines in a release. Raises as `files`, and ReleaseBroken where it is not there."""
        entry = next((each for each in self.files(release) if each.path == path), None)
        content = self.storage.read(object_of(entry.sha256)) if entry else None
        if entry is None or content is None or digest(content) != entry.sha256:
            raise self._broken(release, f"{path} is not there, or not what it was made with")
        return [json.loads(line) for line in content.splitlines()]

    def tombstone(self, release: str) -> dict[str, Any] | None:
        """Who withdrew a release and why, None where it was not withdrawn."""
        content = self.storage.read(f"{release}/{_TOMBSTONE}")
        if content is None:
            return None
        tombstone: _YankNote = self._paper(f"{release}/{_TOMBSTONE}", TOMBSTONE, content)
        return dict(tombstone)

    def _paper(self, name: str, kind: TypeAdapter[T], content: bytes) -> T:
        """Parse a list or a statement of the registry. Raises ReleaseBroken where it cannot be parsed."""
        try:
            return kind.validate_json(content)
        except ValueError as error:
            raise ReleaseBroken("this is not what a registry holds there", f"{self.where}, {name}",
                                "take another copy of the registry, or remove that file") from error

    def put(self, manifest: dict[str, Any], files: dict[str, Source], now: float | None = None) -> str:
        """Store a release: `files` by their path in it. Gives its id; what is there already is not written again. `manifest`
        gets the digest of the list of files. Raises ReleaseBroken where a file changes while it is read."""
        now = time.time() if now is None else now
        listed = [ReleaseFile(path, file.sha256, file.n_bytes) for path, file in sorted(files.items())]
        lines = "".join(canonical(each._asdict()) + "\n" for each in listed).encode()
        content = canonical({**manifest, "format": FORMAT, "files": digest(lines)}).encode()
        release = release_id(content)
        with self.storage.lock():
            there = self.storage.names(_OBJECTS)
            for each in listed:
                self._put_content(each, files[each.path].path, there, now)
            if self.storage.read(f"{release}/{_MANIFEST}") is None:
                self.storage.lay_out(release, {each.path: object_of(each.sha256) for each in listed},
                                   {_FILES: lines, _MANIFEST: content})
        return release

    def _put_content(self, each: ReleaseFile, path: Path, there: dict[str, Entry], now: float) -> None:
        name = object_of(each.sha256)
        if (entry := there.get(name)) and entry.n_bytes == each.n_bytes:
            self.storage.keep(name, entry, path, GRACE_S, now)
        else:
            self.storage.upload(name, path)
            if _sha256(path) != each.sha256:
                self.storage.remove([name])
                raise ReleaseBroken("the file changed while it was read", str(path), "end what writes to it, and release again")
        there[name] = Entry(each.n_bytes, now)

    def promote(self, release: str, expected: str | None, why: str, by: str | None = None) -> None:
        """Make `release` the current one, where `expected` still is. Raises Overtaken where another writer was first,
        ReleaseBroken where it was withdrawn or is not whole."""
        self._must_stand(release)
        if release == expected == self.current():
            return
        before = self.storage.read(_CURRENT)
        is_expected = ((before or b"").decode().strip() or None) == expected
        if not is_expected or not self.storage.swap(_CURRENT, before, f"{release}\n".encode()):
            raise Overtaken(f"{self.current() or 'nothing'} is promoted, no longer {expected or 'nothing'}: somebody else was "
                            "first", self.where, "look at it with traceroom diff, then release again")
        self._log_promotion(expected, release, why, by)

    def withdraw(self, release: str, why: str, instead: str | None, by: str | None = None) -> list[str]:
        """Delete a release's content, and record who did and why. Where it is the promoted one, `instead` replaces it, or
        nothing does. Gives the names that were removed: contents that no other release has."""
        self.manifest(release)
        if release == self.current():
            if instead is not None:
                self.promote(instead, release, f"in the place of {release}, withdrawn: {why}", by)
            elif self.storage.swap(_CURRENT, f"{release}\n".encode(), b"\n"):
                self._log_promotion(release, None, f"withdrawn: {why}", by)
            else:
                raise Overtaken("another release was promoted meanwhile", self.where, "run traceroom yank again")
        tombstone = {"format": WITHDRAWN, "release": release, "at": _now(), "by": by or account_name("somebody"), "why": why,
                     "instead": instead, "manifest": digest(self.storage.read(f"{release}/{_MANIFEST}") or b"")}
        name = f"{release}/{_TOMBSTONE}"
        if self.storage.read(name) is None:
            self.storage.swap(name, None, canonical(tombstone).encode())
        with self.storage.lock():
            files = self.files(release)
            for folder in sorted({each.path.partition("/")[0] for each in files}):
                self.storage.remove_folder(f"{release}/{folder}")
            gone = sorted({object_of(each.sha256) for each in files} - self.reachable())
            self.storage.remove(gone)
        return gone

    def pin(self, name: str, release: str | None) -> None:
        """Give a release a name that keeps it, or take the name away (None)."""
        if name == _CURRENT or name.startswith("r-") or not name:
            raise InputError("this can be no name of a pin", name, "choose another")
        while True:
            before = self.storage.read(_PINS)
            pins = {key: value for key, value in json.loads(before or b"{}").items() if key != name}
            if self.storage.swap(_PINS, before, canonical(pins | ({name: release} if release else {})).encode()):
                return

    def reachable(self, without: Iterable[str] = ()) -> set[str]:
        """Names of the contents of all releases that were not withdrawn, `without` some."""
        return {object_of(each.sha256) for release in self.ids()
                if release not in without and not self.tombstone(release) for each in self.files(release)}

    def verify(self, releases: Iterable[str]) -> Iterator[dict[str, str]]:
        """{"release", "path", "what"} of every file that is not what its release says; each content is read once."""
        checked: dict[str, str | None] = {}
        for release in releases:
            if self.tombstone(release):
                continue
            try:
                files = self.files(release)
            except ReleaseBroken as error:
                yield {"release": release, "path": "", "what": error.what}
                continue
            for each in files:
                if each.sha256 not in checked:
                    with tempfile.TemporaryDirectory() as folder:
                        checked[each.sha256] = self._download(each, Path(folder) / "content")
                if wrong := checked[each.sha256]:
                    yield {"release": release, "path": each.path, "what": wrong}
                elif not self.storage.has_copy(f"{release}/{each.path}", object_of(each.sha256)):
                    yield {"release": release, "path": each.path, "what": "is not there, or not what it was made with"}
            wanted = {_MANIFEST, _FILES, *(each.path for each in files)}
            there = {name.partition("/")[2] for name in self.storage.names(release)}
            yield from ({"release": release, "path": path, "what": "is none of its files"} for path in sorted(there - wanted))

    def fetch(self, release: str, to: Path) -> Path:
        """Copy a release's files into a new folder, each checked by its digest. Raises InputError, ReleaseBroken."""
        self._must_stand(release)
        if to.exists() and any(to.iterdir() if to.is_dir() else [to]):
            raise InputError("there is something already", str(to), "name a folder that is new or empty")
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent) as draft:
            for each in self.files(release):
                path = Path(draft) / each.path
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if wrong := self._download(each, path):
                    raise self._broken(release, f"{each.path} {wrong}")
            (Path(draft) / _MANIFEST).write_bytes(self.storage.read(f"{release}/{_MANIFEST}") or b"")
            if to.exists():
                to.rmdir()
            Path(draft).rename(to)
            Path(draft).mkdir()   # for the context to remove
        return to

    def _download(self, each: ReleaseFile, path: Path) -> str | None:
        """Download a content into a new file, no more of it than there should be; gives what is wrong with it."""
        try:
            self.storage.download(object_of(each.sha256), path, each.n_bytes)
        except FileNotFoundError:
            return "is not there"
        return None if _sha256(path) == each.sha256 else "is not what it was made with"

    def _must_stand(self, release: str) -> None:
        if tombstone := self.tombstone(release):
            raise ReleaseBroken(
                f"it was withdrawn by {tombstone['by']} at {tombstone['at']}: {tombstone['why']}", release, "take another")
        there = self.storage.names(_OBJECTS)
        for each in sorted(self.files(release)):
            if (entry := there.get(object_of(each.sha256))) is None or entry.n_bytes != each.n_bytes:
                raise self._broken(release, f"{each.path} is not there, or not whole")

    def _log_promotion(self, before: str | None, release: str | None, why: str, by: str | None) -> None:
        """Add a line to the log; a promotion whose line was lost (its process was killed) gets one now."""
        row = {"at": _now(), "by": by or account_name("somebody"), "from": before, "to": release, "why": why}
        while True:
            log = self.storage.read(_LOG)
            rows = [json.loads(line) for line in (log or b"").splitlines()]
            last = rows[-1]["to"] if rows else None
            lost = [] if last == before else [
                {"at": row["at"], "by": None, "from": last, "to": before, "why": "found promoted; its own line was lost"}]
            lines = "".join(canonical(each) + "\n" for each in (*lost, row)).encode()
            if self.storage.swap(_LOG, log, (log or b"") + lines):
                return

    def _broken(self, release: str, what: str) -> ReleaseBroken:
        return ReleaseBroken(what, f"{self.where}, {release}", "take another release, or make it anew: traceroom release")


def release_id(manifest: bytes) -> str:
    """Id of the release with this manifest."""
    return f"r-{digest(manifest)[:16]}"


def _is_plain(path: str) -> bool:
    """Return whether a path leads below a release's folder, on every system, and to none of its papers."""
    parts = path.split("/")
    return (path not in (_MANIFEST, _FILES, _TOMBSTONE) and len(path) <= _LONGEST_PATH and path.isprintable()
            and not any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_NAME for part in parts)
            and not set(path) & set('\\:*?"<>|'))


def object_of(sha256: str) -> str:
    """Name of the content with this digest."""
    return f"{_OBJECTS}/{sha256[:2]}/{sha256}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def collect(registry: Registry, keep: int = KEEP, days: float = DAYS, dry: bool = False, now: float | None = None) -> Collected:
    """Remove what the policy allows; `dry` only counts. Raises Overtaken where such a release was promoted meanwhile."""
    now = time.time() if now is None else now
    with registry.storage.lock():
        there = registry.storage.names("")
        before = now - days * 86400
        written = {name: each.written_at for name, each in there.items()}
        listed = registry.listed()
        promoted = [each for each in listed if each.state in ("promoted", "earlier")]
        last = {each.release for each in promoted[:max(keep, 1)]}
        gone = sorted(
            each.release for each in listed
            if each.state in ("earlier", "waiting") and not each.pins and each.release not in last
            and (each.state == "earlier" or written.get(f"{each.release}/manifest.json", before) < before))
        for release in gone if not dry else ():
            if release == registry.current():
                raise Overtaken(f"{release} was promoted meanwhile", registry.where, "run traceroom gc again")
            registry.storage.remove_folder(release)
        kept = registry.reachable(gone if dry else ())
        unreferenced = {name: each.n_bytes for name, each in there.items()
                if name.startswith("objects/") and name not in kept and each.written_at < now - days * 86400}
        if not dry:
            registry.storage.remove(sorted(unreferenced))
    return Collected(gone, len(unreferenced), sum(unreferenced.values()))
