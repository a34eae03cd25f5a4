"""Repositories on a server, as bare clones on this machine.

In: an address (`https://`, `ssh://`, `git@host:path`, `file://`) and a folder. Out: the folder of a clone with all branches and
tags, made by the program git and brought up to date by later calls. Who may read is git's matter: its helpers for credentials,
keys and configuration are the user's own; nobody is asked. Does not see: files of git-lfs, submodules.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from warehouse.errors import InputError

_ADDRESS = re.compile(r"(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_SECONDS = 3600.0
FRESH_S = 60.0
"""A clone that was brought up to date within this time is taken as it is."""
_CAREFUL = ("-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")


def is_address(path: str) -> bool:
    """Whether a repository is on a server."""
    return _ADDRESS.fullmatch(path) is not None


def mirror_folder(address: str, folder: Path) -> Path:
    """Return where the clone of an address lies below a folder."""
    path = urlsplit(address).path if "://" in address else address.partition(":")[2]
    name = Path(path.rstrip("/")).name.removesuffix(".git") or "repository"
    return folder / hashlib.sha256(address.encode()).hexdigest()[:12] / f"{name}.git"


def fetched(address: str, folder: Path) -> Path:
    """Return the clone of an address with what the server has now. InputError: it cannot be had."""
    clone = mirror_folder(address, folder)
    stamp = clone / "traceroom-fetched"
    if not clone.is_dir():
        draft = clone.with_suffix(f".{os.getpid()}")
        draft.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(draft, ignore_errors=True)
        try:
            _git(address, "clone", "--quiet", "--mirror", "--", address, str(draft))
            draft.rename(clone)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    elif not stamp.is_file() or time.time() - stamp.stat().st_mtime > FRESH_S:
        _git(address, "--git-dir", str(clone), "fetch", "--quiet", "--prune", "origin", "+refs/*:refs/*")
    stamp.touch()
    return clone


def shown_address(address: str) -> str:
    """Return an address without a name and password in it."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", address)


def _git(address: str, *words: str) -> None:
    program = shutil.which("git")
    if program is None:
        raise InputError("a repository on a server needs the program git", shown_address(address),
                         "install git, or give a bundle or a clone")
    env = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        ran = subprocess.run([program, *_CAREFUL, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                             timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise InputError("the server of the repository did not answer in an hour", shown_address(address),
                         "try `git ls-remote` with it") from error
    if ran.returncode:
        lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        last = shown_address(lines[-1].removeprefix("fatal: ")) if lines else f"exit code {ran.returncode}"
        raise InputError(f"the repository cannot be had from its server ({last})", shown_address(address),
                         "see that `git ls-remote` with it works for this user without a question")
