"""What a session saw and changed in files: the calls of tools that read, edit and run, as typed frames.

In: a call with its answer. Out: what it showed of a file (`FileLines`), what it changed (`FileEdit`), and what it ran
(`CommandRun`). Tools are known by the names and values of their arguments, so that every agent's tools are read.

Sees: files shown whole or in part, with or without line numbers; `cat`, `head`, `sed -n`, `nl` and `grep -n` in a shell;
replaced texts, written files, inserted lines, patches (also in a shell). Does not see: what a program changed
(`CommandRun` says that anything may have changed), notebooks, pictures, what was cut from an output.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from extractors.workspaces.patches import BEGIN, FilePatch, file_patches, lines_of

_PATHS = ("file_path", "filePath", "path", "filename", "file", "target_file", "absolute_path", "notebook_path")
_FOLDERS = ("workdir", "cwd", "working_directory", "directory")
_COMMANDS = ("command", "cmd", "commands", "script", "keystrokes", "bash_command")
_CONTENTS = ("content", "file_text", "contents", "new_content", "text")
_OLD = ("old_string", "old_str", "oldString", "old_text", "search", "old")
_NEW = ("new_string", "new_str", "newString", "new_text", "replace", "new")
_PATCHES = ("input", "patch", "diff", "patch_text")
_SEARCHED = ("pattern", "query", "regex", "search_term")
_VERBS = frozenset(("view", "create", "str_replace", "insert", "undo_edit", "view_range"))
"""Words that a tool of several kinds takes as its `command`."""
_NUMBERED = re.compile(r"[ \t]*(\d+)(?:→|\t|: ?| ?\| ?)(.*)")
_MATCH = re.compile(r"([^\s:][^:\n]*?):(\d+):(.*)")
_CUT = re.compile(r"truncated|omitted|\[\.\.\.|… *\+?\d+ lines", re.IGNORECASE)
_RANGE = re.compile(r"(\d+),(\d+)p")
_READERS = frozenset((
    "cat", "head", "sed", "nl", "grep", "rg", "ls", "find", "wc", "pwd", "echo", "true", "which", "tail", "type", "git", "gh",
    "cd", "file", "stat", "tree", "test", "[", "env", "printenv", "date", "diff"))
_READING_GIT = frozenset((
    "log", "status", "diff", "show", "rev-parse", "branch", "blame", "ls-files", "grep", "remote", "describe", "add", "commit",
    "push", "config", "fetch", "tag", "shortlog", "rev-list"))
"""Commands of git that leave the files as they are."""
_SWITCHING_GIT = frozenset((
    "checkout", "switch", "pull", "reset", "stash", "rebase", "merge", "restore", "clean", "cherry-pick", "revert", "apply",
    "am", "mv", "rm", "clone", "worktree"))
_SHELLS = frozenset(("sh", "bash", "zsh", "dash"))


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of a file, as a call showed them."""

    path: str
    first_line: int
    lines: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change of one file. `patch` where a patch tells it; else `before` (None: whatever was there) gave way to `after`."""

    path: str
    before: str | None = None
    after: str | None = None
    everywhere: bool = False
    patch: FilePatch | None = None
    line: int | None = None
    """The line that `after` was put behind."""

    @property
    def texts(self) -> tuple[str | None, str | None]:
        """What gave way, and to what; of a patch all its hunks together."""
        if self.patch is None:
            return self.before, self.after
        return ("\n".join(line for hunk in self.patch.hunks for line in hunk.before),
                "\n".join(line for hunk in self.patch.hunks for line in hunk.after))

    def applied(self, text: str | None) -> str | None:
        """Return the file's text after the change, None where the change does not fit it."""
        if self.patch is not None:
            return self.patch.applied(text)
        if self.line is not None:
            lines = (text or "").splitlines(keepends=True)
            added = (self.after or "").rstrip("\n") + "\n"
            return "".join([*lines[:self.line], added, *lines[self.line:]]) if self.line <= len(lines) else None
        if not self.before:
            return self.after
        if text is None or self.before not in text:
            return None
        return text.replace(self.before, self.after or "", -1 if self.everywhere else 1)


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command that ran."""

    command: str
    output: str
    exit_code: int | None
    switches: bool
    """It may have brought the files to another commit."""
    writes: bool
    """It may have changed files."""


Frame = FileLines | FileEdit | CommandRun


def frames(arguments: str | None, content: str | None, is_error: bool | None) -> list[Frame]:
    """Return what one call saw, changed and ran; none where its arguments are of no such tool."""
    try:
        given = json.loads(arguments) if arguments else None
    except ValueError:
        given = arguments
    if isinstance(given, str):
        given = {"input": given}
    if not isinstance(given, dict):
        return []
    output, exit_code = _output(content)
    failed = is_error is True or exit_code not in (None, 0)
    folder = _first_text(given, _FOLDERS) or ""
    command = _command(given)
    if command is not None:
        return list(_of_command(command, folder, output, exit_code, failed))
    path = _first_text(given, _PATHS)
    if failed:
        return []
    if path is None:
        patches = [patch for name in _PATCHES if isinstance(given.get(name), str) for patch in file_patches(given[name])]
        return [_patched(patch, folder) for patch in patches]
    path = _joined(folder, path)
    edits = list(_edits(given, path))
    if edits:
        return list(edits)
    if _first_text(given, _SEARCHED) is not None:
        return list(_matches(output, path))
    shown = _shown(path, output, _number(given, ("offset", "start_line", "first_line")), any(
        given.get(name) is not None for name in ("offset", "limit", "start_line", "end_line", "view_range")))
    return [shown] if shown is not None else []


def _output(content: str | None) -> tuple[str, int | None]:
    """Return what a call printed, and its exit code where its answer tells it."""
    text = content or ""
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except ValueError:
            return text, None
        if isinstance(value, dict) and isinstance(output := value.get("output", value.get("stdout")), str):
            stated = value.get("metadata")
            metadata = stated if isinstance(stated, dict) else value
            code = metadata.get("exit_code", metadata.get("returncode"))
            return output, code if isinstance(code, int) else None
    return text, None


def _command(given: dict[str, Any]) -> str | None:
    for name in _COMMANDS:
        value = given.get(name)
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            is_shell = len(value) > 1 and value[0].rsplit("/", 1)[-1] in _SHELLS
            return value[-1] if is_shell else shlex.join(value)
        if isinstance(value, str) and value.strip() and value not in _VERBS:
            return value
    return None


def _of_command(command: str, folder: str, output: str, exit_code: int | None, failed: bool) -> Iterator[Frame]:
    if not failed and BEGIN in command:
        for patch in file_patches(command):
            yield _patched(patch, folder)
        return
    simple = commands_of(command)
    for words in simple or ():
        if words[:1] == ["cd"] and len(words) == 2:
            folder = _joined(folder, words[1])
    shown = [words for words in simple or () if words[0] != "cd"]
    if not failed and len(shown) == 1:
        yield from _of_reader(shown[0], folder, output)
    yield CommandRun(command, output, exit_code, switches=simple is None or any(_switches(words) for words in simple),
              writes=simple is None or any(_writes(words) for words in simple))


def commands_of(command: str) -> list[list[str]] | None:
    """Return the words of each command of a line, None where it is more than commands in a row."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return None
    commands: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", ";", "||", "|"):
            commands.append([])
        elif word and set(word) <= set("();<>|&"):
            return None   # redirections and groups may write
        else:
            commands[-1].append(word)
    return [words for words in commands if words] or None


def _of_reader(words: list[str], folder: str, output: str) -> Iterator[Frame]:
    """Tell what a command that prints a file printed."""
    program, rest = words[0].rsplit("/", 1)[-1], words[1:]
    paths = [word for word in rest if not word.startswith("-")]
    if program in ("cat", "nl") and len(paths) == 1:
        shown = _shown(_joined(folder, paths[0]), output, None, False)
    elif program == "sed" and "-n" in rest and len(paths) == 2 and (match := _RANGE.fullmatch(paths[0])) is not None:
        shown = _shown(_joined(folder, paths[1]), output, int(match[1]), True)
    elif program == "head" and paths and (len(paths) == 1 or paths[0].isdecimal()):
        shown = _shown(_joined(folder, paths[-1]), output, 1, True)
    elif program in ("grep", "rg"):
        yield from _matches(output, folder)
        return
    else:
        return
    if shown is not None:
        yield shown


def _switches(words: list[str]) -> bool:
    program, verb = words[0].rsplit("/", 1)[-1], next((word for word in words[1:] if not word.startswith("-")), "")
    creates = program == "git" and verb in ("checkout", "switch") and any(word in ("-b", "-c", "-B", "-C") for word in words)
    return program == "git" and verb in _SWITCHING_GIT and not creates


def _writes(words: list[str]) -> bool:
    """Whether a command may change the files of the sources; one that runs tests leaves them."""
    program, verb = words[0].rsplit("/", 1)[-1], next((word for word in words[1:] if not word.startswith("-")), "")
    if program == "git":
        return verb not in _READING_GIT and not (verb in ("checkout", "switch") and not _switches(words))
    if program == "sed":
        return "-n" not in words[1:] and any(word.startswith("-i") or word == "--in-place" for word in words[1:])
    return program not in _READERS and "pytest" not in words and "unittest" not in words


def _edits(given: dict[str, Any], path: str) -> Iterator[FileEdit]:
    several = given.get("edits")
    for edit in several if isinstance(several, list) else [given]:
        if not isinstance(edit, dict):
            continue
        old, new = _first_text(edit, _OLD), _first_text(edit, _NEW, empty=True)
        line = _number(edit, ("insert_line",))
        if line is not None and new is not None:
            yield FileEdit(path, after=new, line=line)
        elif old is not None and new is not None:
            yield FileEdit(path, old, new, everywhere=bool(edit.get("replace_all") or edit.get("allow_multiple")))
        elif (content := _first_text(edit, _CONTENTS, empty=True)) is not None or (new is not None and old is None):
            yield FileEdit(path, after=content if content is not None else new)


def _patched(patch: FilePatch, folder: str) -> FileEdit:
    patch.path = _joined(folder, patch.path)
    return FileEdit(patch.path, patch=patch)


def _shown(path: str, output: str, first_line: int | None, is_part: bool) -> FileLines | None:
    """Return the lines of a file that an output shows, up to where it was cut."""
    lines = [line.removesuffix("\r") for line in lines_of(output)]
    cut = next((n for n, line in enumerate(lines) if _CUT.search(line) and _NUMBERED.fullmatch(line) is None), None)
    numbered = _numbered(lines)
    if numbered is not None:
        first, lines, is_all = numbered
        return FileLines(path, first, tuple(lines), first == 1 and not is_part and is_all)
    if cut is not None:   # it was cut within the line before
        lines = lines[:max(0, len(_without_blank_end(lines[:cut])) - 1)]
    if not lines:
        return None
    return FileLines(path, first_line or 1, tuple(lines), not is_part and cut is None)


def _without_blank_end(lines: list[str]) -> list[str]:
    n = len(lines)
    while n and not lines[n - 1].strip():
        n -= 1
    return lines[:n]


def _numbered(lines: list[str]) -> tuple[int, list[str], bool] | None:
    """Return the number of the first line and the lines that follow each other, and whether nothing else stands there."""
    matches = [_NUMBERED.fullmatch(line) for line in lines]
    begin = next((n for n, match in enumerate(matches) if match is not None), None)
    if begin is None or begin > 2:
        return None
    taken: list[str] = []
    first = int(matches[begin][1])   # type: ignore[index]
    for match in matches[begin:]:
        if match is None or int(match[1]) != first + len(taken):
            break
        taken.append(match[2])
    n_other = sum(1 for line in lines[begin + len(taken):] if line.strip())
    return (first, taken, n_other == 0 and begin == 0) if len(taken) >= max(1, n_other) else None


def _matches(output: str, folder: str) -> Iterator[FileLines]:
    """Tell the lines that a search found, where it gives path, line and text."""
    is_file = "." in posixpath.basename(folder)
    for line in lines_of(output):
        match = _MATCH.fullmatch(line)
        if match is not None:
            path = match[1] if match[1].startswith("/") else _joined("" if is_file else folder, match[1])
            yield FileLines(path, int(match[2]), (match[3],), False)


def _joined(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path))


def _first_text(given: dict[str, Any], names: tuple[str, ...], empty: bool = False) -> str | None:
    return next((given[name] for name in names if isinstance(given.get(name), str) and (given[name] or empty)), None)


def _number(given: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((given[name] for name in names if isinstance(given.get(name), int) and not isinstance(given[name], bool)), None)
