"""A repository's files in which an agent works: reads, edits, runs commands and tests, opens a pull request.

In: trees.pack (the trees that tasks begin with), starts.jsonl {"session_id", "tree", "committed", "instant"}, the recipe, and
where the log shows pull requests or issues host.jsonl (host.py).
Out: an app. Its state is what differs from the tree, a value: a fork, a snapshot or a way back costs nothing, whatever the
files weigh. Reading, editing and searching ask no process; commands run in a sandbox that ends with them (sandbox.py), so
that nothing an episode started outlives a call. The agent's git has one commit, made here: no history, no remote, no other
branch.

Does not see: empty folders in the tree, what commands do outside of the workspace. Not deterministic: what a command prints.
Standard library only.
"""

from __future__ import annotations

import ast
import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from ..apps import App, LeavingState, Name, Result, Start
from ..canonical import canonical
from ..files import rows_of
from ..schemas import Schema, fields, refusal
from .host import FILE as HOST
from .host import ISSUE, PULL_REQUEST, HostRecords, HostView, InvalidCall, Written
from .recipes import Recipe
from .sandbox import FOLDER, LINK, PROGRAMS, WORKSPACE, ChangedFile, Changes, CommandLimits, CommandResult, SandboxUnavailable
from .trees import Began, Tree, changed, folders, lay_out, unpacked
from .verifying import Verifier

FILE = "file"
"""Class of the entities of the tree."""
GIT = ".git"
MOST_LINES = 2000
"""Lines that are read at once."""
MOST_FINDS = 200
PATH: Schema = {"type": "string", "minLength": 1, "description": "path of a file in the repository"}
TEXT: Schema = {"type": "string"}
LINE: Schema = {"type": "integer", "minimum": 1}
TOOLS: dict[str, tuple[str, Schema, bool]] = {
    "shell": (f"Run a command with bash in {WORKSPACE}, the repository; its files persist, its processes end with it.",
              fields("command", command={"type": "string", "minLength": 1},
                     seconds={"type": "number", "minimum": 1, "maximum": 600}), True),
    "read": ("Read lines of a file, each behind its number.", fields("path", path=PATH, first_line=LINE, n_lines=LINE), False),
    "edit": ("Replace a text in a file. It has to stand there once, unless `everywhere` is true.",
             fields("path", "old", "new", path=PATH, old={"type": "string", "minLength": 1}, new=TEXT,
                    everywhere={"type": "boolean"}), True),
    "write": ("Create a file, or replace all of it.", fields("path", "content", path=PATH, content=TEXT), True),
    "search": ("Search files by a regular expression; `files` is a pattern of paths such as src/*.py.",
               fields("pattern", pattern={"type": "string", "minLength": 1}, files={"type": "string", "minLength": 1}), False),
    "test": ("Run the tests, or those of some paths.",
             fields(paths={"type": "array", "items": {"type": "string", "minLength": 1}}), True),
    "lint": ("Check the changed files: syntax, and what the repository's linter finds.", fields(), False),
    "open_pr": ("Open a pull request with what was changed.",
                fields("title", "body", title={"type": "string", "minLength": 1}, body=TEXT), True),
}
"""Tool -> description, schema of the arguments, whether it writes."""
_DATE = "2000-01-01T00:00:00+00:00"
_COMMITTER = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (
    ("NAME", "Repository"), ("EMAIL", "repository@localhost"), ("DATE", _DATE))}


Files = tuple[Changes, Written]
"""A state: what differs from the tree, and what was written on pull requests and issues."""


def tools_with(host: HostRecords) -> dict[str, tuple[str, Schema, bool]]:
    """Return the tools of a workspace with these pull requests and issues."""
    return {**TOOLS, **host.tools}


def descriptors(prefix: str = "", host: HostRecords | None = None) -> list[dict[str, Any]]:
    """Return the MCP descriptors of the tools, each name behind a prefix."""
    tools = tools_with(host or HostRecords(()))
    return [{"name": prefix + name, "description": description, "inputSchema": schema,
             "annotations": {"readOnlyHint": not writes}} for name, (description, schema, writes) in sorted(tools.items())]


class WorkspaceApp(App):
    """The trees of a repository, and how commands run in them."""

    leaves = True

    def __init__(self, name: str, folder: Path, prefix: str = "") -> None:
        self.name = name
        self.prefix = prefix
        self.host = HostRecords(rows_of(folder / HOST) if (folder / HOST).is_file() else ())
        self.tools = tools_with(self.host)
        self.answers = frozenset(prefix + tool for tool in self.tools)
        self.writes = frozenset(prefix + tool for tool, (_, _, writes) in self.tools.items() if writes)
        self.recipe = Recipe(folder)
        pack = (folder / "trees.pack").read_bytes()
        self._digest = sha256(pack).hexdigest()
        self._trees = unpacked(pack)
        self._starts = list(rows_of(folder / "starts.jsonl"))

    def reset(self, start: Start) -> WorkspaceState:
        return WorkspaceState(self, self.began(start), self.host.at(start.instant), ({}, {}))

    def began(self, start: Start) -> Began:
        """Return what a session began with; without one the latest that began by then."""
        own = [row for row in self._starts if row["session_id"] in start.session_ids]
        by_then = [row for row in self._starts if start.instant is None or (row["instant"] or "") <= start.instant]
        row = own[0] if own else max(by_then or self._starts[:1], key=lambda row: str(row["instant"] or ""))
        return Began(f"{self._digest} {row['tree']}", self._trees[row["tree"]], self._trees[row["committed"]])

    def folder(self, began: Began) -> Path:
        """Return the folder in which a tree lies, with a git of one commit; laid out when it is first asked for."""
        return folders.folder(f"{began.name} with git", lambda: {**began.tree, **_git_of(began.committed)})

    def run(self, began: Began, changes: Changes, command: list[str], limits: CommandLimits | None = None) -> CommandResult:
        """Run a command over a tree and changes."""
        return self.recipe.run(self.folder(began), changes, command, limits=limits)


class WorkspaceState(LeavingState):
    """One episode of a workspace."""

    __slots__ = ("_app", "_began", "_files", "_host")

    def __init__(self, app: WorkspaceApp, began: Began, host: HostView, files: Files) -> None:
        self._app = app
        self._began = began
        self._host = host
        self._files = files

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        name = tool.removeprefix(self._app.prefix)
        if tool not in self._app.answers:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._app.answers))}", True, "unknown")
        wrong = refusal(self._app.tools[name][1], arguments, "the arguments")
        if wrong:
            return Result(wrong, True, "derived")
        try:
            content, is_error = _ANSWERS[name](self, **arguments)
        except InvalidCall as refused:
            return Result(str(refused), True, refused.tier)
        except SandboxUnavailable as error:
            return Result(str(error), True, "unknown")
        return Result(content, is_error, "derived")

    def snapshot(self) -> Files:
        return self._files

    def restore(self, snapshot: Files) -> None:
        self._files = snapshot

    def fork(self) -> WorkspaceState:
        return WorkspaceState(self._app, self._began, self._host, self._files)

    def since(self, snapshot: Files) -> dict[str, Any] | None:
        """Return what changed since a snapshot: {path: [mode, text or {"base64"}], or None where it is gone}."""
        before, after = snapshot[0], self._files[0]
        if before is after:
            return None
        paths = [path for path in sorted(before.keys() | after.keys())
                 if before.get(path, _SAME) != after.get(path, _SAME) and not _is_git(path)]
        return {path: _written(after[path]) if path in after else "as begun" for path in paths} or None

    def again(self, row: Mapping[str, Any]) -> Result | None:
        """Take a call of a journal as it came out: a command may print something else today."""
        content, is_error, remains = row.get("content"), row.get("is_error"), row.get("left")
        if not isinstance(content, str):
            return None
        if isinstance(remains, dict):
            after = dict(self._files[0])
            for path, value in remains.items():
                if _is_git(path) or not _is_path(path):
                    continue
                if value == "as begun":
                    after.pop(path, None)
                else:
                    after[path] = _read(value)
            self._files = after, self._files[1]
        tool = str(row.get("tool")).removeprefix(self._app.prefix)
        if (tool == "open_pr" or tool in self._app.host.tools) and not is_error:
            return None   # it is made again
        return Result(content, bool(is_error), "derived")

    def difference(self) -> dict[str, Any]:
        """Return the files that differ from the start, and the pull requests and issues that were written on."""
        documents = {f"{FILE}/{path}": self._text(path) for path in self._paths_changed()}
        documents |= {"/".join(name): text for name, text in self._files[1].items()}
        return {"documents": documents, "write_calls": []}

    def read(self, name: Name) -> tuple[str | None, str | None]:
        if name[0] in (PULL_REQUEST, ISSUE):
            return self._host.read(name, self._files[1])
        if name[0] != FILE:
            return None, None
        return _described(self._began.tree.get(name[1])), self._text(name[1])

    def may_write(self, tool: str) -> bool:
        return tool in self._app.writes

    def verified(self, grader: Path, task_id: str, seed: int = 0) -> Any:
        """Return what the verifier makes of the files as they are now (verifying.py)."""
        verifier = Verifier.of(grader, self._app.name, self._app.recipe)
        return verifier.verify(task_id, self._began, self.changes, seed)

    @property
    def changes(self) -> dict[str, ChangedFile | None]:
        """What the episode changed, without its git."""
        return self._changes_by_file()

    def file(self, path: str) -> ChangedFile | None:
        """Return a file as it is now, None where there is none."""
        changes = self._files[0]
        if path in changes:
            file = changes[path]
            return None if file is None or file.mode == FOLDER else file
        parts = path.split("/")
        above = (changes.get("/".join(parts[:n]), _SAME) for n in range(1, len(parts)))
        if any(each is None or (isinstance(each, ChangedFile) and each.mode != FOLDER) for each in above):
            return None   # its folder is gone, or a file lies there
        return self._began.tree.get(path)

    def paths(self) -> list[str]:
        """Return all paths of files, without git's."""
        return sorted(path for path in changed(self._began.tree, self._files[0]) if not _is_git(path))

    def shell(self, command: str, seconds: float = 120.0) -> tuple[str, bool]:
        limits = CommandLimits(seconds=seconds)
        return self._ran(self._app.run(self._began, self._files[0], ["/bin/bash", "-c", command], limits))

    def test(self, paths: Iterable[str] = ()) -> tuple[str, bool]:
        chosen = [_parsed(path.partition("::")[0]) + path[len(path.partition("::")[0]):] for path in paths]
        return self._ran(self._app.run(self._began, self._files[0], [*self._app.recipe.command(), *chosen]))

    def lint(self) -> tuple[str, bool]:
        """Check the syntax of changed files of Python, then what the repository's own linter says."""
        chosen = [path for path in self._paths_changed() if path.endswith(".py") and self.file(path) is not None]
        problems = []
        for path in chosen:
            try:
                ast.parse(self._content(path), path)
            except (SyntaxError, ValueError) as error:
                problems.append(f"{path}:{getattr(error, 'lineno', None) or 1}: {error}")
        own = self._app.recipe.lint
        if own and chosen and not problems:
            ran = self._app.run(self._began, self._files[0], [*own, *chosen])
            return ran.output or "nothing was found", False
        return "\n".join(problems) or "nothing was found", False

    def read_lines(self, path: str, first_line: int = 1, n_lines: int = MOST_LINES) -> tuple[str, bool]:
        lines = self._content(_parsed(path)).split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        if first_line > max(1, len(lines)):
            raise InvalidCall(f"{path} has {len(lines)} lines")
        some = lines[first_line - 1:first_line - 1 + min(n_lines, MOST_LINES)]
        rest = len(lines) - (first_line - 1 + len(some))
        shown = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(some, first_line))
        return shown + (f"\n[{rest} more lines]" if rest else ""), False

    def edit(self, path: str, old: str, new: str, everywhere: bool = False) -> tuple[str, bool]:
        text = self._content(_parsed(path))
        n = text.count(old)
        if n == 0:
            raise InvalidCall(f"the text does not stand in {path}")
        if n > 1 and not everywhere:
            raise InvalidCall(f"the text stands in {path} {n} times; give more of what is around it, or everywhere=true")
        self._put(_parsed(path), text.replace(old, new) if everywhere else text.replace(old, new, 1))
        return f"replaced {n if everywhere else 1} in {path}", False

    def write(self, path: str, content: str) -> tuple[str, bool]:
        parsed = _parsed(path)
        parts = parsed.split("/")
        if any(self.file("/".join(parts[:n])) is not None for n in range(1, len(parts))):
            raise InvalidCall(f"a folder of {path} is a file")
        if any(other.startswith(parsed + "/") for other in self.paths()):
            raise InvalidCall(f"{path} is a folder")
        is_new = self.file(parsed) is None
        self._put(parsed, content)
        return f"{'created' if is_new else 'replaced'} {path}", False

    def search(self, pattern: str, files: str = "*") -> tuple[str, bool]:
        """Search with grep in a sandbox: a pattern of the agent's may take for ever."""
        named = [path for path in self.paths() if fnmatchcase(path, files) or fnmatchcase(path.rpartition("/")[2], files)]
        chosen = [path for path in named if (file := self.file(path)) is not None and file.mode != LINK]
        if not chosen:
            raise InvalidCall(f"no file is called {files}")
        limits = CommandLimits(seconds=20)
        ran = self._app.run(self._began, self._files[0], [
            "/bin/grep", "-nHIEs", "-m", str(MOST_FINDS), "-e", pattern, "--", *chosen], limits)
        if ran.timed_out or ran.code < 0 or (ran.code > 1 and ran.output.startswith("/bin/grep:")):  # else: not readable
            raise InvalidCall(f"the search failed: {ran.output.strip() or 'it took too long'}")
        lines = ran.output.splitlines()
        more = f"\n[{len(lines) - MOST_FINDS} more lines]" if len(lines) > MOST_FINDS else ""
        return "\n".join(lines[:MOST_FINDS]) + more or "nothing was found", False

    def open_pr(self, title: str, body: str) -> tuple[str, bool]:
        if not self._paths_changed():
            raise InvalidCall("nothing was changed: there is nothing to ask for")
        number, written = self._host.proposed(title, body, self._paths_changed(), self._files[1])
        self._files = self._files[0], written
        return f"opened pull request {number}: {title}", False

    def list_prs(self, state: str | None = None, before: int | None = None) -> tuple[str, bool]:
        return self._host.listed(PULL_REQUEST, self._files[1], state, before), False

    def list_issues(self, state: str | None = None, before: int | None = None) -> tuple[str, bool]:
        return self._host.listed(ISSUE, self._files[1], state, before), False

    def get_pr(self, number: int) -> tuple[str, bool]:
        return self._host.shown(PULL_REQUEST, number, self._files[1]), False

    def get_issue(self, number: int) -> tuple[str, bool]:
        return self._host.shown(ISSUE, number, self._files[1]), False

    def comment(self, number: int, body: str) -> tuple[str, bool]:
        self._files = self._files[0], self._host.commented(number, body, self._files[1])
        return f"commented on {int(number)}", False

    def _ran(self, ran: CommandResult) -> tuple[str, bool]:
        """Take the changes of a command; return what it says."""
        if not ran.too_much and ran.changes != self._files[0]:
            self._files = ran.changes, self._files[1]
        marks = [f"[it was ended after {ran.seconds:.0f} s]"] if ran.timed_out else []
        marks += ["[it left more than may be changed: nothing of it stays]"] if ran.too_much else []
        marks += [f"[exit code {ran.code}]"] if ran.code and not ran.timed_out else []
        return "\n".join(filter(None, (ran.output.rstrip("\n"), *marks))), bool(ran.code)

    def _put(self, path: str, text: str) -> None:
        before = self.file(path)
        if before is not None and before.mode == LINK:
            raise InvalidCall(f"{path} is a link")
        try:
            content = text.encode()
        except UnicodeEncodeError:
            raise InvalidCall("the content is no text: it has half a surrogate pair") from None
        file = ChangedFile(content, before.mode if before else 0o100644)
        self._files = {**self._files[0], path: file}, self._files[1]

    def _content(self, path: str) -> str:
        file = self.file(path)
        if file is None:
            near = [each for each in self.paths() if each.rpartition("/")[2] == path.rpartition("/")[2]][:3]
            raise InvalidCall(f"no file {path!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
        if file.mode == LINK:
            raise InvalidCall(f"{path} is a link to {file.content.decode('utf-8', 'replace')}")
        try:
            return file.content.decode()
        except UnicodeDecodeError:
            raise InvalidCall(f"{path!r} is no text: {len(file.content)} bytes") from None

    def _paths_changed(self) -> list[str]:
        return list(self._changes_by_file())

    def _changes_by_file(self) -> dict[str, ChangedFile | None]:
        """Return what differs, without git: each file of a folder that is gone by itself, no folders."""
        tree, changes = self._began.tree, self._files[0]
        tree_folders = {str(above) for path in tree for above in PurePosixPath(path).parents} if changes else set()
        single: dict[str, ChangedFile | None] = {}
        for path, file in changes.items():
            is_folder = file is not None and file.mode == FOLDER
            single[path] = None if is_folder else file
            if path in tree_folders and not is_folder:
                single |= {each: None for each in tree if each.startswith(path + "/") and each not in changes}
        return {path: file for path, file in sorted(single.items()) if not _is_git(path) and self._differs(path, file)}

    def _differs(self, path: str, file: ChangedFile | None) -> bool:
        before = self._began.tree.get(path)
        if file is None:
            return before is not None
        is_same_kind = before is not None and (before.mode == LINK) == (file.mode == LINK)
        return not (is_same_kind and before is not None and before.content == file.content
                    and bool(before.mode & 0o100) == bool(file.mode & 0o100))

    def _text(self, path: str) -> str | None:
        return _described(self.file(path))


_ANSWERS: dict[str, Callable[..., tuple[str, bool]]] = {
    **{name: getattr(WorkspaceState, name) for name in TOOLS if name != "read"}, "read": WorkspaceState.read_lines,
    **{tool.__name__: tool for tool in (WorkspaceState.list_prs, WorkspaceState.get_pr, WorkspaceState.list_issues,
                                        WorkspaceState.get_issue, WorkspaceState.comment)}}
"""Tool -> what answers it: the text, and whether it is an error."""
_SAME = object()


def _is_git(path: str) -> bool:
    return path == GIT or path.startswith(GIT + "/")


def _is_path(path: Any) -> bool:
    """Whether it is a path as a command's changes have it; a journal may claim anything."""
    if not isinstance(path, str) or "\0" in path:
        return False
    try:
        names = os.fsencode(path).split(b"/")
    except UnicodeEncodeError:
        return False
    return len(path) < 3000 and all(0 < len(each) < 256 and each not in (b".", b"..") for each in names)


def _written(file: ChangedFile | None) -> Any:
    if file is None:
        return None
    try:
        return [file.mode, file.content.decode()]
    except UnicodeDecodeError:
        return [file.mode, {"base64": base64.b64encode(file.content).decode()}]


def _read(value: Any) -> ChangedFile | None:
    """Return a file as a journal has it; what is none counts as gone."""
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], int)):
        return None
    content = value[1]
    try:
        data = content.encode() if isinstance(content, str) else base64.b64decode(str(content["base64"]))
    except (ValueError, KeyError, TypeError):
        return None
    mode = value[0]
    if mode in (FOLDER, LINK):
        is_good = (not data) if mode == FOLDER else 0 < len(data) < 4096 and b"\0" not in data
        return ChangedFile(data, mode) if is_good else None
    return ChangedFile(data, 0o100000 | (mode & 0o777))


def _described(file: ChangedFile | None) -> str | None:
    if file is None:
        return None
    mode = "link" if file.mode == LINK else "0755" if file.mode & 0o100 else "0644"
    return canonical({"hash": sha256(file.content).hexdigest(), "mode": mode, "size": len(file.content)})


def _parsed(path: str) -> str:
    """Return a path in its one form; what begins with the workspace's own is taken as within it."""
    inner = path.removeprefix(WORKSPACE + "/") if path.startswith(WORKSPACE + "/") else path
    names = [name for name in inner.split("/") if name not in ("", ".")]
    if not names or ".." in names or inner.startswith("/") or not path.isprintable() or names[0] == GIT:
        raise InvalidCall(f"invalid path {path!r} (expected names joined by /, in the repository)")
    return "/".join(names)


def _git_of(committed: Tree) -> dict[str, ChangedFile]:
    """Return the files of a git with one commit of a tree, the same for the same tree; none where this machine has no git."""
    git = shutil.which("git")
    if git is None:
        return {}
    with tempfile.TemporaryDirectory(prefix="traceroom-git-") as scratch:
        folder = lay_out({path: file for path, file in committed.items() if not _is_git(path)}, Path(scratch) / "tree")
        env = {"PATH": PROGRAMS, "HOME": scratch, "GIT_CONFIG_NOSYSTEM": "1", **_COMMITTER}
        run = partial(subprocess.run, cwd=folder, env=env, check=True, capture_output=True)
        own = ["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"]
        run([git, *own, "init", "-q", "-b", "main", "--template="])
        for name, value in (("user.name", "Agent"), ("user.email", "agent@localhost"), ("core.checkStat", "minimal"),
                            ("core.trustctime", "false"), ("gc.auto", "0")):
            run([git, *own, "config", name, value])
        run([git, *own, "add", "-A", "-f"])
        run([git, *own, "commit", "-q", "--allow-empty", "-m", "The repository as it was"])
        run([git, *own, "pack-refs", "--all"])
        files = {}
        for path in sorted((folder / GIT).rglob("*")):
            if path.is_file() and not path.is_symlink() and path.parent.name != "logs" and "logs" not in path.parts:
                files[path.relative_to(folder).as_posix()] = ChangedFile(path.read_bytes(), 0o100644)
            elif path.is_dir() and path.name == "refs":
                files[(path / "heads").relative_to(folder).as_posix() + "/.keep"] = ChangedFile(b"", 0o100644)
        return files


def load(folder: Path, row: Mapping[str, Any]) -> WorkspaceApp:
    """Load the app from its folder; `prefix` of the manifest's row stands before the names of its tools."""
    return WorkspaceApp(row["name"], folder, row.get("prefix", ""))
