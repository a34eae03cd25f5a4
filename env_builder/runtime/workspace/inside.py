"""Run one command over a tree of files, where nothing else can be reached: the side within, a program of its own.

In, on stdin: a line of JSON (what to run, over which tree, under which limits), then the contents of changed files. Out, on
stdout: a line of JSON (exit code, output, changed files), then their contents. The layout `overlay` makes namespaces of its
own (mounts, processes, network, users), lays a temporary layer over the tree, and shows the command a root that has the named
folders and nothing else; `copy` works on a copy of the tree and isolates nothing: a container does, or nobody; `server` makes
such a root without a tree for a command that speaks over stdin and stdout, whose forks get trees (`run_in_fork`).

Whatever the command began ends with it. Sees of its changes: regular files, links and folders; sockets and devices are
dropped. Standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

_PRIVATE = 0x4000 | (1 << 18)
_BIND, _READ_ONLY = 0x1000 | 0x4000, 0x1
_AGAIN = 0x20 | 0x1000
"""Change the flags of what is mounted here alone."""
_KEPT_FLAGS = {8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags of the host's mount as `statvfs` and as `mount` has them, which a user of a namespace may not take away."""
_NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 0x2, 0x4, 0x8
_MOUNTS, _NAMES, _IPC, _USERS, _PIDS, _NETWORK = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_DETACH = 2
_SET_FLAGS, _UP = 0x8914, 0x1
_END_WITH_PARENT, _DUMPABLE, _NO_NEW_RIGHTS, _DROP_RIGHT = 1, 4, 38, 24
_RIGHTS_VERSION = 0x20080522
_KEPT_RIGHTS = (0, 1, 3, 5, 6, 7)
"""Of root within: chown, dac_override, fowner, kill, setgid, setuid, all of them over its own files alone."""
_OWN_USER = 10002
"""Who runs commands where the host's side is root."""
_DEVICES = ("null", "zero", "full", "random", "urandom")
_DROPPED = ("__pycache__", ".pytest_cache")
_ENTRY_BYTES = 512
"""What a changed path weighs beside its content: files without content are not free."""
_PIPE_READS = 32
"""Reads that empty any pipe."""
_FOLDER, _LINK = 0o040000, 0o120000
WORKSPACE = "/repo"
TREES = "/trees"
"""Where a server has trees."""
_NO_MORE = "size=4k,mode=755"
"""Of an empty folder laid over another."""
_libc = ctypes.CDLL(None, use_errno=True)
Row = dict[str, Any]
Change = tuple[str, int | None, bytes]
"""Path, mode (None: gone), content (of a link its target)."""


class Unable(Exception):
    """The kernel does not allow it."""


def main() -> int:
    """Run the command of stdin and write what came of it to stdout."""
    os.umask(0o022)  # what is made here is for another user
    spec = json.loads(sys.stdin.buffer.readline())
    changes: list[Change] = [(path, mode, sys.stdin.buffer.read(size)) for path, mode, size in spec["changes"]]
    out = os.fdopen(os.dup(1), "wb")
    try:
        if spec["layout"] == "server":
            return _serve(spec)
        ran, after = _in_namespaces(spec, changes) if spec["layout"] == "overlay" else _in_copy(spec, changes)
    except Unable as error:
        _answer(out, {"unable": str(error)}, [])
    else:
        _answer(out, ran, after)
    return 0


def _answer(out: Any, ran: Row, after: list[Change]) -> None:
    rows = [[path, mode, len(content)] for path, mode, content in after]
    out.write(json.dumps({**ran, "changes": rows}).encode() + b"\n" + b"".join(content for *_, content in after))
    out.flush()


def _in_namespaces(spec: Row, changes: list[Change]) -> tuple[Row, list[Change]]:
    """Become another process in namespaces of its own; the parent passes on what that one writes."""
    is_root = _leave()
    read_end, write_end = os.pipe()
    first = os.fork()
    if first == 0:
        _libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        os.close(read_end)
        with os.fdopen(write_end, "wb") as out:
            try:
                _first_process(spec, changes, is_root, out)
            except Unable as error:
                _answer(out, {"unable": str(error)}, [])
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        header = answer.readline()
        if not header:
            raise Unable("the sandbox ended before it answered")
        ran: Row = json.loads(header)
        changed: list[Change] = [(path, mode, answer.read(size)) for path, mode, size in ran.pop("changes")]
    os.waitpid(first, 0)
    return ran, changed


def _leave() -> bool:
    """Leave the host's namespaces; return whether this is root there."""
    is_root = os.geteuid() == 0
    if not is_root:
        own = os.geteuid(), os.getegid()
        _call(_libc.unshare, _USERS)
        _map_users(0, own)
    _call(_libc.unshare, _MOUNTS | _PIDS | _NETWORK | _IPC | _NAMES)
    return is_root


def _first_process(spec: Row, changes: list[Change], is_root: bool, out: Any) -> None:
    """Lay out the root, run the command in it and collect what it changed: as the first process, with whose end all end."""
    user = _OWN_USER if is_root else os.geteuid()
    _let_it_call_itself()
    _lay_out(spec)
    os.chown(f"{spec['root']}/layer/upper", user, user)
    _overlay(spec["tree"], spec["root"])
    _turn_to(spec["root"])
    _apply(WORKSPACE, changes, user if is_root else None)
    ran = _run(spec, lambda: _enter(spec, is_root, user))
    _answer(out, ran, list(_of_layer("/layer/upper", spec["limits"]["files_mb"] << 20, ran)))


def _serve(spec: Row) -> int:
    """Run a command in namespaces of its own, with this process's stdin and stdout, until it ends."""
    is_root = _leave()
    first = os.fork()
    if first == 0:
        _libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        user = _OWN_USER if is_root else os.geteuid()
        _let_it_call_itself()
        _lay_out(spec)
        _turn_to(spec["root"])
        server = os.fork()
        if server == 0:
            _become(spec, lambda: _enter(spec, is_root, user))
        os.waitpid(server, 0)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


def run_in_fork(spec: Row, changes: list[Change], out: Any, act: Callable[[], object]) -> None:
    """Run a function over a tree of a server, in namespaces of its own, and write what came of it as `main` does.

    To be called in a fork of a server's process, that ends with it.
    """
    _libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    own = os.geteuid(), os.getegid()
    _call(_libc.unshare, _USERS)
    _map_users(0 if spec["as_root"] else _OWN_USER, own)
    _call(_libc.unshare, _MOUNTS | _PIDS | _NETWORK | _IPC | _NAMES)
    first = os.fork()
    if first == 0:
        _libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        try:
            _first_fork(spec, changes, out, act)
        except Unable as error:
            _answer(out, {"unable": str(error)}, [])
        os._exit(0)
    os.waitpid(first, 0)


def _first_fork(spec: Row, changes: list[Change], out: Any, act: Callable[[], object]) -> None:
    """Lay the tree over the server's root, and what nobody else may have written to; run the function; collect the changes."""
    _let_it_call_itself()
    _mount("none", "/", None, _PRIVATE)
    files_mb = spec["limits"]["files_mb"]
    for folder in ("/tmp", "/dev/shm"):
        _mount("tmpfs", folder, "tmpfs", _NO_SUID | _NO_DEVICES, f"size={files_mb}m,mode=1777")
    _mount("tmpfs", "/layer", "tmpfs", _NO_SUID | _NO_DEVICES, f"{_room(files_mb)},mode=700")
    os.mkdir("/layer/upper")
    os.mkdir("/layer/work")
    upper = os.open("/layer/upper", os.O_RDONLY)
    _overlay(spec["tree"], "")
    _call(_libc.umount2, b"/layer", _DETACH)
    _mount("tmpfs", TREES, "tmpfs", _READ_ONLY | _NO_SUID | _NO_DEVICES, _NO_MORE)
    _mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
    _apply(WORKSPACE, changes, None)
    ran = _run(spec, lambda: _enter(spec, False, os.geteuid()), act)
    _answer(out, ran, list(_of_layer(f"/proc/self/fd/{upper}", files_mb << 20, ran)))


def _let_it_call_itself() -> None:
    """Switch on the loopback device of the network that is its own: servers of tests are reached by their tests."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:   # some kernels forbid it
        fcntl.ioctl(device, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def _room(files_mb: int) -> str:
    """Return the options of a file system in memory that may hold twice so much."""
    return f"size={files_mb * 2}m,nr_inodes={(files_mb << 21) // _ENTRY_BYTES}"


def _lay_out(spec: Row) -> None:
    """Make the root that the command sees, without the tree."""
    root = spec["root"]
    _mount("none", "/", None, _PRIVATE)
    _mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEVICES, f"{_room(spec['limits']['files_mb'])},mode=755")
    for name in ("proc", "dev/pts", "dev/shm", "tmp", "layer/upper", "layer/work", ".old", WORKSPACE[1:]):
        os.makedirs(f"{root}/{name}")
    for name in ("tmp", "dev/shm"):
        os.chmod(f"{root}/{name}", 0o1777)
    os.chmod(f"{root}/layer", 0o700)
    for source, target in spec["readable"]:
        _show(source, root + target)
    for folder in filter(os.path.isdir, (root + each for each in spec["hidden"])):
        _mount("tmpfs", folder, "tmpfs", _READ_ONLY | _NO_SUID | _NO_DEVICES, _NO_MORE)
    for name in _DEVICES:
        with open(f"{root}/dev/{name}", "w"):
            pass
        _mount(f"/dev/{name}", f"{root}/dev/{name}", None, _BIND)
    _mount("devpts", f"{root}/dev/pts", "devpts", _NO_SUID | _NO_PROGRAMS, "newinstance,ptmxmode=0666,mode=0620")
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                         ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):
        os.symlink(target, f"{root}/dev/{name}")
    os.makedirs(f"{root}/etc", exist_ok=True)
    with open(f"{root}/etc/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n::1 localhost\n")
    _mount("proc", f"{root}/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)


def _turn_to(root: str) -> None:
    """Make a folder the root, and let go of the host's."""
    _call(_libc.pivot_root, root.encode(), f"{root}/.old".encode())
    os.chdir("/")
    _call(_libc.umount2, b"/.old", _DETACH)
    os.rmdir("/.old")


def _overlay(tree: str, root: str) -> None:
    """Lay the layer of a root over a tree, as its workspace."""
    layers = f"lowerdir={tree},upperdir={root}/layer/upper,workdir={root}/layer/work"
    for options in (",redirect_dir=off,metacopy=off", ",userxattr", ""):
        try:
            _mount("overlay", root + WORKSPACE, "overlay", _NO_SUID | _NO_DEVICES, layers + options)
            break
        except Unable:
            if not options:
                raise


def _show(source: str, target: str) -> None:
    """Show a folder or file of the host, read only; a link of the host is the same link here."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        with open(target, "w"):
            pass
    _mount(source, target, None, _BIND)
    present = os.statvfs(target).f_flag
    kept = sum(flag for shown, flag in _KEPT_FLAGS.items() if present & shown)
    _mount("none", target, None, _AGAIN | _READ_ONLY | _NO_SUID | _NO_DEVICES | kept)


def _enter(spec: Row, is_root: bool, user: int) -> None:
    """Become, in the process that will run the command, a user without rights over anything else."""
    inside = 0 if spec["as_root"] else _OWN_USER
    if is_root:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        _call(_libc.prctl, _DUMPABLE, 1, 0, 0, 0)
    if is_root or not spec["as_root"]:
        own = os.geteuid(), os.getegid()
        _call(_libc.unshare, _USERS)
        _map_users(inside, own)
    kept = _KEPT_RIGHTS if spec["as_root"] else ()
    for right in range(64):
        if right not in kept:
            _libc.prctl(_DROP_RIGHT, right, 0, 0, 0)
    mask = sum(1 << right for right in kept)
    _call(_libc.capset, struct.pack("Ii", _RIGHTS_VERSION, 0), struct.pack("6I", mask, mask, 0, 0, 0, 0))
    _call(_libc.prctl, _NO_NEW_RIGHTS, 1, 0, 0, 0)


def _in_copy(spec: Row, changes: list[Change]) -> tuple[Row, list[Change]]:
    """Work on a copy of the tree."""
    workspace = spec["root"] + "/" if spec["root"] == WORKSPACE else spec["root"] + WORKSPACE
    shutil.copytree(spec["tree"], workspace, symlinks=True, dirs_exist_ok=True)
    is_root = os.geteuid() == 0 and spec["root"] == WORKSPACE
    if is_root:
        for folder, folders, files in os.walk(workspace):
            for name in (*folders, *files, ""):
                os.lchown(os.path.join(folder, name), _OWN_USER, _OWN_USER)
    _apply(workspace, changes, _OWN_USER if is_root else None)

    def enter() -> None:
        if is_root and not spec["as_root"]:
            os.setgroups([])
            os.setresgid(_OWN_USER, _OWN_USER, _OWN_USER)
            os.setresuid(_OWN_USER, _OWN_USER, _OWN_USER)

    ran = _run({**spec, "cwd": workspace + spec["cwd"].removeprefix(WORKSPACE)}, enter, ends_all=is_root)
    return ran, list(_of_copy(spec["tree"], workspace, spec["limits"]["files_mb"] << 20, ran))


def _apply(workspace: str, changes: list[Change], user: int | None) -> None:
    """Make these changes in the workspace; folders stand before what lies in them."""
    for path, mode, content in changes:
        target = f"{workspace}/{path}"
        if mode is None and not _is_reached(workspace, path):
            continue
        _clear_way(workspace, path)
        _remove(target, keep_folder=mode == _FOLDER)
        if mode is None:
            continue
        _make_folders(workspace, path if mode == _FOLDER else os.path.dirname(path), user)
        if mode == _LINK:
            os.symlink(content.decode("utf-8", "surrogateescape"), target)
        elif mode != _FOLDER:
            with open(target, "wb") as file:
                file.write(content)
            os.chmod(target, stat.S_IMODE(mode))
        if user is not None:
            os.lchown(target, user, user)


def _is_reached(workspace: str, path: str) -> bool:
    """Whether a path leads through folders alone: a link would lead elsewhere."""
    parts = path.split("/")
    above = [f"{workspace}/{'/'.join(parts[:n])}" for n in range(1, len(parts))]
    return all(os.path.isdir(each) and not os.path.islink(each) for each in above)


def _clear_way(workspace: str, path: str) -> None:
    """Remove the links and files that stand where folders of a path are to be."""
    parts = path.split("/")
    for n in range(1, len(parts)):
        above = f"{workspace}/{'/'.join(parts[:n])}"
        if os.path.islink(above) or os.path.isfile(above):
            os.unlink(above)


def _make_folders(workspace: str, path: str, user: int | None) -> None:
    at = workspace
    for name in filter(None, path.split("/")):
        at = f"{at}/{name}"
        if not os.path.isdir(at):
            os.mkdir(at)
            if user is not None:
                os.chown(at, user, user)


def _remove(path: str, keep_folder: bool) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        if not keep_folder:
            shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _run(spec: Row, enter: Callable[[], None], act: Callable[[], object] | None = None, ends_all: bool = True) -> Row:
    """Run the command, or a function, as its own group of processes; end all of it after its time."""
    limits = spec["limits"]
    read_end, write_end = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(spec, enter, (os.open("/dev/null", os.O_RDONLY), write_end, write_end), act)
    os.close(write_end)
    chunks, timed_out = _read_until(read_end, began + limits["seconds"], limits["output_bytes"], child)
    for target in (-child, -1) if ends_all and os.getpid() == 1 else (-child,):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(target, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(read_end)
    code = -signal.SIGKILL if timed_out else os.waitstatus_to_exitcode(status)
    return {"code": code, "output": chunks.decode("utf-8", "replace"), "timed_out": timed_out,
            "seconds": round(time.monotonic() - began, 4)}


def _become(
    spec: Row, enter: Callable[[], None], streams: tuple[int, int, int] = (0, 1, 2), act: Callable[[], object] | None = None,
) -> None:
    """Turn this process into the command, or call a function in it and end."""
    limits = spec["limits"]
    try:
        os.setsid()
        for what, most in ((resource.RLIMIT_DATA, limits["memory_mb"] << 20), (resource.RLIMIT_FSIZE, limits["files_mb"] << 20),
                           (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 1024)):
            hard = resource.getrlimit(what)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (most, most))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        enter()
        resource.setrlimit(resource.RLIMIT_NPROC, (limits["processes"], limits["processes"]))
        os.closerange(3, 1024)
        os.chdir(spec["cwd"])
        os.umask(0o022)
        if act is not None:
            act()
            os._exit(0)
        os.execvpe(spec["command"][0], spec["command"], spec["env"])
    except (OSError, ValueError, Unable) as error:
        os.write(2, f"{spec['command'][0]}: cannot be run: {error}\n".encode())
    os._exit(127)


def _read_until(read_end: int, deadline: float, most: int, child: int) -> tuple[bytes, bool]:
    """Return the beginning and the end of what is written, until the command ends or its time is over."""
    begin, end, n_cut = b"", b"", 0
    watched = os.pidfd_open(child)
    poll = select.poll()
    poll.register(read_end, select.POLLIN)
    poll.register(watched, select.POLLIN)
    timed_out = False
    n_more = None
    while True:
        wait = deadline - time.monotonic()
        if wait <= 0:   # output without end does not put the end off
            timed_out = True
            break
        ready = {fd for fd, _ in poll.poll(int(wait * 1000) + 1)}
        if watched in ready and n_more is None:   # what is in the pipe is its own, what others go on to write is not
            n_more = _PIPE_READS
        if read_end in ready and n_more != 0:
            chunk = os.read(read_end, 1 << 16)
            taken = chunk[:max(0, most // 2 - len(begin))]
            begin += taken
            end += chunk[len(taken):]
            n_cut += max(0, len(end) - most // 2)
            end = end[-(most // 2):]
            n_more = None if n_more is None else n_more - 1
            if not chunk:
                poll.unregister(read_end)
        elif watched in ready:
            break
    os.close(watched)
    return begin + (f"\n[… {n_cut} bytes …]\n".encode() if n_cut else b"") + end, timed_out


def _of_layer(upper: str, most: int, ran: Row) -> Iterator[Change]:
    """Yield what a layer changed over the tree; ends, and says so, where that is more than `most` bytes."""
    total = 0
    for folder, folders, files in os.walk(upper):
        folders[:] = sorted(name for name in folders if name not in _DROPPED)
        below = os.path.relpath(folder, upper)
        above = "" if below == "." else below + "/"
        if above and _is_opaque(folder):
            yield above[:-1], None, b""
        if above and not folders and not files:
            yield above[:-1], _FOLDER, b""
        for name in sorted((*files, *(each for each in folders if os.path.islink(f"{folder}/{each}")))):
            change = _entry(f"{folder}/{name}", above + name)
            if change is not None:
                total += len(change[2]) + _ENTRY_BYTES
                if total > most:
                    ran["too_much"] = True
                    return
                yield change


def _entry(path: str, shown: str) -> Change | None:
    """Return a file as a change; None for what is dropped."""
    state = os.lstat(path)
    if stat.S_ISCHR(state.st_mode):
        return (shown, None, b"") if state.st_rdev == 0 else None
    if stat.S_ISLNK(state.st_mode):
        return shown, _LINK, os.readlink(path).encode("utf-8", "surrogateescape")
    if not stat.S_ISREG(state.st_mode):
        return None
    with open(path, "rb") as file:
        return shown, 0o100000 | stat.S_IMODE(state.st_mode), file.read()


def _is_opaque(folder: str) -> bool:
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        try:
            if os.getxattr(folder, name) == b"y":
                return True
        except OSError:
            pass
    return False


def _of_copy(tree: str, workspace: str, most: int, ran: Row) -> Iterator[Change]:
    """Yield in what a copy differs from its tree."""
    before, after = _files(tree), _files(workspace)
    total = 0
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            yield path, None, b""
        elif path not in before or before[path] != after[path]:
            mode, content = after[path]
            total += len(content) + _ENTRY_BYTES
            if total > most:
                ran["too_much"] = True
                return
            yield path, mode, content


def _files(root: str) -> dict[str, tuple[int, bytes]]:
    """Return all files and links, and folders in which nothing lies."""
    files_there: dict[str, tuple[int, bytes]] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _DROPPED)
        above = os.path.relpath(folder, root)
        above = "" if above == "." else above + "/"
        if above and not folders and not files:
            files_there[above[:-1]] = (_FOLDER, b"")
        for name in sorted((*files, *(each for each in folders if os.path.islink(f"{folder}/{each}")))):
            change = _entry(f"{folder}/{name}", above + name)
            if change is not None and change[1] is not None:
                files_there[above + name] = (change[1], change[2])
    return files_there


def _map_users(inside: int, own: tuple[int, int]) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{inside} {own[0]} 1"), ("gid_map", f"{inside} {own[1]} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError as error:
            raise Unable(f"/proc/self/{name}: {error.strerror}") from error


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = (source.encode(), target.encode(), kind.encode() if kind else None)
    _call(_libc.mount, *encoded, ctypes.c_ulong(flags), options.encode() or None)


def _call(function: Any, *arguments: Any) -> None:
    if function(*arguments) != 0:
        code = ctypes.get_errno()
        named = next((each.decode() for each in arguments[1:] if isinstance(each, bytes)), "")
        raise Unable(f"{function.__name__} {named}".rstrip() + f": {os.strerror(code)}")


if __name__ == "__main__":
    raise SystemExit(main())
