"""A git repository, read only: its commits, branches, trees and files.

In: a bundle (`git bundle create`), a bare clone or a checkout. Nothing of a repository is executed: neither its hooks nor its
configuration are read. Sees every commit that a branch or tag reaches. Does not see submodules, files of git-lfs (it sees their
pointers), or what a shallow clone lacks.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from warehouse.errors import InputError

MOST_BYTES = 1 << 29
"""Of a bundle, which is held in memory; a larger one is given as a bare clone."""
_BUNDLE = b"# v"
_FOLDER, _LINK, _REGULAR = 0o040000, 0o120000, 0o100000


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit."""

    commit_id: str
    tree_id: str
    parents: tuple[str, ...]
    at: datetime
    """When it was committed."""
    message: str
    author: str = ""
    """Name and address, `Name <address>`."""
    authored: datetime | None = None


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a tree, or a folder in it."""

    blob_id: str
    """Of a folder: its tree."""
    mode: int
    """As git has it: 0o100644, 0o100755, 0o120000 (a link), 0o40000 (a folder)."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.mode == _FOLDER

    @property
    def is_regular(self) -> bool:
        """Whether it is a file, not a link or a submodule."""
        return self.mode & 0o170000 == _REGULAR


class Repository:
    """A repository as of when it was opened. Errors: InputError for anything else, and where objects are missing or damaged."""

    def __init__(self, name: str, objects: Any, refs: dict[str, str]) -> None:
        self.name = name
        self._objects = objects
        self.refs = refs
        """Full name of a branch or tag -> commit."""
        self.commits: dict[str, Commit] = {}
        """Every commit that a branch or tag reaches, the parents before their children."""
        self._read_commits()
        self._entries = lru_cache(maxsize=1 << 16)(self._read_tree)
        self.text = lru_cache(maxsize=4096)(self._text)
        """Blob -> its text, None where it is no UTF-8."""

    @classmethod
    def open(cls, path: str | Path) -> Repository:
        """Open a bundle, a bare clone or a checkout."""
        path = Path(path)
        try:
            if path.is_dir():
                return cls._of_folder(path)
            with path.open("rb") as file:
                if file.read(len(_BUNDLE)) == _BUNDLE:
                    return cls._of_bundle(path)
        except ModuleNotFoundError as error:
            raise InputError("reading a repository needs dulwich", str(path), "pip install traceroom[code]") from error
        except OSError as error:
            raise InputError(f"the repository cannot be opened ({error.strerror})", str(path),
                             "give a bundle, a bare clone or a checkout") from error
        raise InputError("this is no git repository", str(path), "give a bundle, a bare clone or a checkout")

    @classmethod
    def _of_bundle(cls, path: Path) -> Repository:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"the bundle holds more than {MOST_BYTES >> 20} MiB", str(path),
                             "give a bare clone: git clone --mirror BUNDLE FOLDER")
        name = path.resolve().parent.name if path.stem in _ORDINARY else path.stem
        return cls.of_bundle(path.read_bytes(), name, str(path))

    @classmethod
    def of_bundle(cls, content: bytes, name: str, path: str) -> Repository:
        """Return the repository in a bundle's bytes; `path` is for messages."""
        try:
            from dulwich.bundle import read_bundle
            from dulwich.object_store import MemoryObjectStore
        except ModuleNotFoundError as error:
            raise InputError("reading a repository needs dulwich", path, "pip install traceroom[code]") from error
        objects = MemoryObjectStore()
        try:
            with read_bundle(io.BytesIO(content)) as bundle:
                if bundle.prerequisites:
                    raise InputError("the bundle lacks the commits that it goes on from", path,
                                     "write a whole one: git bundle create FILE --all")
                bundle.store_objects(objects)
                refs = {name.decode("utf-8", "replace"): commit.decode() for name, commit in bundle.references.items()}
        except _DAMAGED as error:
            raise InputError(f"the bundle is damaged ({type(error).__name__})", path, "write it again") from error
        return cls(name, objects, refs)

    @classmethod
    def _of_folder(cls, path: Path) -> Repository:
        from dulwich.errors import NotGitRepository
        from dulwich.object_store import DiskObjectStore
        from dulwich.refs import DiskRefsContainer

        root = path / ".git" if (path / ".git").is_dir() else path
        if not (root / "objects").is_dir():
            raise InputError("this folder is no git repository", str(path), "give a bundle, a bare clone or a checkout")
        try:
            refs = {name.decode("utf-8", "replace"): commit.decode()
                    for name, commit in DiskRefsContainer(str(root)).as_dict().items()}
            return cls(path.name.removesuffix(".git"), DiskObjectStore(str(root / "objects")), refs)
        except (NotGitRepository, ValueError) as error:
            raise InputError(f"the repository is damaged ({error})", str(path), "run `git fsck`, or clone it again") from error

    def _read_commits(self) -> None:
        """Walk from every branch and tag; a parent stands before its children."""
        self.refs = {name: commit_id for name, ref in sorted(self.refs.items())
                     if (commit_id := self._commit_of(ref)) is not None}
        for tip in self.refs.values():
            waiting = [(tip, False)]
            while waiting:
                commit_id, has_parents = waiting.pop()
                if commit_id in self.commits:
                    continue
                commit = self._commit(commit_id)
                if commit is None:
                    continue
                if has_parents:
                    self.commits[commit_id] = commit
                else:
                    waiting.append((commit_id, True))
                    waiting += [(parent, False) for parent in reversed(commit.parents)]

    def _commit_of(self, ref: str) -> str | None:
        """Return the commit that a ref stands for, through tags."""
        for _ in range(_TAGS_DEEP):
            kind = self._object(ref)
            if kind is None or kind.type_name != b"tag":
                return ref if kind is not None and kind.type_name == b"commit" else None
            ref = kind.object[1].decode()
        return None

    def _commit(self, commit_id: str) -> Commit | None:
        raw = self._object(commit_id)
        if raw is None or raw.type_name != b"commit":
            return None   # beyond the end of a shallow clone
        return Commit(commit_id, raw.tree.decode(), tuple(parent.decode() for parent in raw.parents),
                      datetime.fromtimestamp(raw.commit_time, UTC), raw.message.decode("utf-8", "replace"),
                      raw.author.decode("utf-8", "replace"), datetime.fromtimestamp(raw.author_time, UTC))

    def _object(self, object_id: str) -> Any:
        try:
            return self._objects[object_id.encode()]
        except KeyError:
            return None

    def _read_tree(self, tree_id: str) -> dict[str, TreeFile]:
        """Return what lies in a folder itself, by name."""
        tree = self._object(tree_id)
        return {entry.path.decode("utf-8", "surrogateescape"): TreeFile(entry.sha.decode(), entry.mode)
                for entry in (tree.iteritems() if tree is not None else ())}

    def file(self, commit: Commit, path: str) -> TreeFile | None:
        """Return the file at a path of a commit, None if it does not exist."""
        *folders, name = path.split("/")
        tree_id = commit.tree_id
        for folder in folders:
            entry = self._entries(tree_id).get(folder)
            if entry is None or not entry.is_folder:
                return None
            tree_id = entry.blob_id
        entry = self._entries(tree_id).get(name)
        return entry if entry is not None and not entry.is_folder else None

    @cached_property
    def paths(self) -> frozenset[str]:
        """The path of every file that some commit has."""
        paths: set[str] = set()
        visited: set[tuple[str, str]] = set()
        waiting = [("", commit.tree_id) for commit in self.commits.values()]
        while waiting:
            above, tree_id = waiting.pop()
            if (above, tree_id) in visited:
                continue
            visited.add((above, tree_id))
            for name, entry in self._entries(tree_id).items():
                if entry.is_folder:
                    waiting.append((f"{above}{name}/", entry.blob_id))
                else:
                    paths.add(above + name)
        return frozenset(paths)

    def changes(self, before: str | None, after: str | None) -> dict[str, tuple[TreeFile | None, TreeFile | None]]:
        """Return the files in which two trees differ (None: an empty one): path -> before and after."""
        return dict(sorted(self._changes(before, after, "")))

    def _changes(self, before: str | None, after: str | None, above: str) -> Iterator[_Change]:
        one, other = (self._entries(tree_id) if tree_id is not None else {} for tree_id in (before, after))
        for name in one.keys() | other.keys():
            old, new = one.get(name), other.get(name)
            if old == new:
                continue
            folders = (entry.blob_id if entry is not None and entry.is_folder else None for entry in (old, new))
            old_folder, new_folder = folders
            if old_folder is not None or new_folder is not None:
                yield from self._changes(old_folder, new_folder, f"{above}{name}/")
            files = [entry if entry is not None and not entry.is_folder else None for entry in (old, new)]
            if files != [None, None]:
                yield above + name, (files[0], files[1])

    def content(self, blob_id: str) -> bytes | None:
        """Return the bytes of a file, None where the repository lacks it."""
        blob = self._object(blob_id)
        return None if blob is None else bytes(blob.data)

    def _text(self, blob_id: str) -> str | None:
        content = self.content(blob_id)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError:
            return None

    def resolve(self, short: str) -> str | None:
        """Return the commit whose id begins so, None where none or several do."""
        matching = [commit_id for commit_id in self.commits if commit_id.startswith(short)]
        return matching[0] if len(matching) == 1 else None

    def branch(self, name: str) -> str | None:
        """Return the last commit of a branch, here or on the server it was cloned from."""
        return next((self.refs[ref] for ref in (f"refs/heads/{name}", f"refs/remotes/origin/{name}", name)
                     if ref in self.refs), None)

    @cached_property
    def main(self) -> str | None:
        """The last commit of the main line: of the branch called so, else of the one with the longest history."""
        named = (self.branch(name) for name in _MAIN)
        longest = max(sorted(set(self.refs.values())), key=lambda tip: len(self.history(tip)), default=None)
        return next((tip for tip in named if tip is not None), longest)

    def history(self, tip: str) -> list[Commit]:
        """Return a commit and all before it, the latest first."""
        reached: dict[str, Commit] = {}
        waiting = [tip]
        while waiting:
            commit = self.commits.get(waiting.pop())
            if commit is not None and commit.commit_id not in reached:
                reached[commit.commit_id] = commit
                waiting += commit.parents
        return [commit for commit in reversed(self.commits.values()) if commit.commit_id in reached]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        close = getattr(self._objects, "close", None)
        if close is not None:
            close()

    @property
    def digest(self) -> str:
        """Digest of what the branches and tags stand for, and with that of every object."""
        return hashlib.sha256("\n".join(f"{name} {commit}" for name, commit in sorted(self.refs.items())).encode()).hexdigest()


_Change = tuple[str, tuple[TreeFile | None, TreeFile | None]]
_MAIN = ("main", "master", "trunk", "develop", "default")
_TAGS_DEEP = 8
_ORDINARY = ("repo", "repository", "bundle", "code", "git", "")
"""Names of bundles that say nothing; their folder's name stands for them."""
_DAMAGED = (ValueError, TypeError, LookupError, AssertionError, EOFError, zlib.error)
"""What the reader of a damaged bundle raises."""
