"""Commands reach nothing but their workspace, end with everything they started, and leave exactly what they changed."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from env_builder.image import LOCAL_BASE
from env_builder.runtime.workspace.sandbox import (
    FOLDER,
    LINK,
    ChangedFile,
    Changes,
    CommandLimits,
    CommandResult,
    Sandbox,
    SandboxUnavailable,
)
from env_builder.runtime.workspace.trees import lay_out
from tests.workspaces import file, sandbox

TREE = {"a.txt": file("alpha\n"), "run.sh": file("echo ran\n", 0o100755), "dir/one": file("1"), "dir/two": file("2"),
        "link": file("a.txt", LINK)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trees")
    for folder in (root, root.parent):
        folder.chmod(0o755)
    return lay_out(TREE, root / "tree")


@pytest.fixture(scope="module", params=["user", "root"])
def box(request: pytest.FixtureRequest) -> Sandbox:
    return sandbox(as_root=request.param == "root")


def run(box: Sandbox, tree: Path, command: str, changes: Changes | None = None, **limits: float) -> CommandResult:
    return box.run(tree, changes or {}, ["/bin/bash", "-c", command], limits=CommandLimits(**limits))  # type: ignore[arg-type]


def test_a_command_that_changes_nothing_leaves_nothing(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "cat a.txt link; ./run.sh; exit 3")
    assert (ran.code, ran.output, ran.changes, ran.timed_out) == (3, "alpha\nalpha\nran\n", {}, False)


def test_what_a_command_changes_is_what_the_next_begins_with(box: Sandbox, tree: Path) -> None:
    first = run(box, tree, "echo new > new.txt; rm dir/one; chmod +x a.txt; ln -sf dir/two link; mkdir empty; mkdir -p x/y/z; "
                           "echo deep > x/y/z/f; mv run.sh ran.sh")
    assert first.changes["new.txt"] == ChangedFile(b"new\n", 0o100644) and first.changes["dir/one"] is None
    assert first.changes["link"] == ChangedFile(b"dir/two", LINK) and first.changes["empty"] == ChangedFile(b"", FOLDER)
    assert first.changes["a.txt"] == ChangedFile(b"alpha\n", 0o100755) and first.changes["run.sh"] is None
    again = run(box, tree, "cat new.txt link x/y/z/f; ls dir; ./ran.sh; test -d empty && test -x a.txt", first.changes)
    assert (again.code, again.output) == (0, "new\n2deep\ntwo\nran\n") and again.changes == first.changes
    undone = run(box, tree, "rm -r new.txt x ran.sh empty; echo -n 1 > dir/one; chmod -x a.txt; ln -sf a.txt link; "
                            "printf 'echo ran\\n' > run.sh; chmod 755 run.sh", first.changes)
    shown = run(box, tree, "cat dir/one link run.sh; ls; stat -c %a run.sh a.txt", undone.changes).output
    assert shown == "1alpha\necho ran\na.txt\ndir\nlink\nrun.sh\n755\n644\n"


@pytest.mark.parametrize(("command", "listed"), [
    ("rm -r dir; mkdir dir", ""), ("rm -r dir; mkdir dir; echo 3 > dir/three", "three\n"),
    ("rm -r dir; echo file > dir", "dir\n"),
    ("rm a.txt; mkdir a.txt; mv dir a.txt", ""), ("rm -r dir; ln -s /tmp dir", "dir\n"), ("rm dir/*", "")])
def test_folders_that_were_removed_and_made_again_hold_nothing_of_before(
        box: Sandbox, tree: Path, command: str, listed: str) -> None:
    ran = run(box, tree, command)
    shown = run(box, tree, "ls -d dir > /dev/null 2>&1 && { test -L dir && echo dir || ls dir; }; true", ran.changes)
    assert shown.output == listed and shown.changes == ran.changes


def test_files_of_the_host_are_out_of_reach(box: Sandbox, tree: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    for folder in (tmp_path, *tmp_path.parents):
        if os.access(folder, os.W_OK) and folder.is_relative_to("/tmp/pytest-of-root"):
            folder.chmod(0o755)
    ran = run(box, tree, f"cat {secret} /root/.bashrc /etc/shadow; ls /home /work /root /var /tmp /layer /.old; env")
    assert "of the host" not in ran.output and "root:x:" not in ran.output and "root:*" not in ran.output
    assert {line.partition("=")[0] for line in ran.output.splitlines() if "=" in line and " " not in line} <= {
        "HOME", "LANG", "TZ", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONPATH", "PWD", "SHLVL", "_"}


def test_what_is_shown_of_the_host_cannot_be_written(box: Sandbox, tree: Path, tmp_path: Path) -> None:
    """Where this process is root it owns a site as the user of sandboxes does: only the mount keeps it as it is."""
    packages = lay_out({"runner.py": file("honest = True\n")}, tmp_path / "site")
    for folder in (tmp_path, *tmp_path.parents[:1]):
        folder.chmod(0o755)
    ran = run(box._replace(site=packages), tree, "for f in /site/runner.py /site/new.py /usr/bin/new /traceroom/new.py "
              "/traceroom/traceroom_ask.py /etc/passwd; do echo evil >> $f; done; rm -f /site/runner.py; "
              "mount -o remount,rw /site; chmod 777 /site; cat /site/runner.py")
    assert ran.output.endswith("honest = True\n")
    assert [path.name for path in packages.iterdir()] == ["runner.py"]
    assert (packages / "runner.py").read_text() == "honest = True\n"


def test_packages_of_this_machine_are_no_packages_of_the_workspace(box: Sandbox, tree: Path) -> None:
    assert "ModuleNotFoundError" in run(box, tree, "python3 -c 'import pip'").output


def test_other_processes_are_neither_seen_nor_ended(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, f"ls /proc | grep -c '^[0-9]'; kill -9 {os.getpid()} 1; kill -9 -1; echo not reached")
    assert int(ran.output.split()[0]) < 10


def test_there_is_no_network_but_its_own(box: Sandbox, tree: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = run(box, tree, f"ls /sys/class/net 2>/dev/null; (echo > /dev/tcp/127.0.0.1/{port}) && echo reached; "
                             "(echo > /dev/tcp/1.1.1.1/80) && echo reached")
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert "reached" not in ran.output.replace("unreachable", "")


@pytest.mark.parametrize("command", [
    "echo 1 > /proc/sys/kernel/core_pattern", "echo x > /proc/sysrq-trigger", "mount -t tmpfs none /repo", "unshare -m true",
    "mknod disk b 254 0", "cat /proc/1/environ", "ls /proc/1/root/", "cat /proc/1/mem", "chroot /proc/1/root true",
    "hostname x", "date -s 2001-01-01", "dmesg", "sysctl -w vm.swappiness=1"])
def test_the_kernel_is_not_at_its_service(box: Sandbox, tree: Path, command: str) -> None:
    assert run(box, tree, command).code != 0


def test_namespaces_within_reach_nothing_more(box: Sandbox, tree: Path, tmp_path: Path) -> None:
    packages = lay_out({"runner.py": file("honest = True\n")}, tmp_path / "site")
    for folder in (tmp_path, *tmp_path.parents[:1]):
        folder.chmod(0o755)
    ran = run(box._replace(site=packages), tree, "unshare -Urmn bash -c 'mount -o remount,rw,bind /site; "
              "mount -o remount,rw /site; echo evil >> /site/runner.py; umount -l /site; umount -l /repo; "
              "ls /layer/upper && echo reached; "
              "echo 1 > /proc/sys/kernel/core_pattern && echo reached'; echo end")
    assert (packages / "runner.py").read_text() == "honest = True\n"
    assert "reached" not in ran.output and ran.output.endswith("end\n")


def test_links_that_lead_out_are_kept_as_links_and_lead_nowhere(box: Sandbox, tree: Path) -> None:
    first = run(box, tree, "ln -s /proc/sys/kernel out; ln -s / root; ln -s ../../../etc up; ln -s out out2")
    assert first.changes["out"] == ChangedFile(b"/proc/sys/kernel", LINK)
    again = run(box, tree, "cat root/work/BRIEF.md root/root/.bashrc; ls up/shadow; readlink out", first.changes)
    assert again.output.endswith("/proc/sys/kernel\n") and again.changes == first.changes


def test_changes_never_go_through_a_link(box: Sandbox, tree: Path, tmp_path: Path) -> None:
    """A journal may claim what no command leaves: a link, and a file within it. Who applies it has rights."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    target = tmp_path / "host"
    target.mkdir()
    (target / "own").write_text("kept")
    for way in (box, Sandbox("process")):
        for place, name in (("/proc/sys/kernel", "core_pattern"), (str(target), "planted"), ("/tmp", "x")):
            changes = {"to": file(place, LINK), f"to/{name}": file("|evil"), "to/deep/er": file("x")}
            ran = run(way, tree, f"cat to/{name}; test -L to || echo folder", changes)
            assert ran.output == "|evilfolder\n", (way, place)
        run(way, tree, "true", {"link": file(str(target), LINK), "link/own": None})
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert [path.name for path in target.iterdir()] == ["own"]


def test_a_process_that_stays_ends_with_its_command(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "(setsid sh -c 'while true; do date > late; sleep 0.05; done' > /dev/null 2>&1 &) ; sleep 0.2; "
                         "setsid nohup sleep 300.5 & echo done", seconds=20)
    assert ran.output.endswith("done\n") and ran.seconds < 5 and not ran.timed_out
    assert "late" in ran.changes and not running("300.5")


def test_a_process_that_stays_and_writes_without_end_holds_nothing_up(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "yes & sleep 0.2; exit 5", seconds=20)
    assert ran.code == 5 and ran.seconds < 10 and not ran.timed_out and len(ran.output) < 31_000


def test_time_that_is_over_ends_what_runs_with_what_it_wrote(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "trap '' TERM INT; echo begun | tee file; sleep 100 & sleep 100", seconds=0.5)
    assert ran.timed_out and ran.code < 0 and ran.seconds < 3 and ran.output == "begun\n"
    assert ran.changes == {"file": file("begun\n")}


def test_output_without_end_ends_in_time_with_its_begin_and_end(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "echo first; yes", seconds=0.5, output_bytes=1000)
    assert ran.timed_out and ran.seconds < 3 and ran.output.startswith("first\ny\n") and len(ran.output) < 1100
    some = run(box, tree, "echo first; seq 100000; echo last", output_bytes=1000)
    assert some.output.startswith("first\n") and some.output.endswith("last\n") and "bytes …]" in some.output and some.code == 0


def test_too_many_processes_are_refused(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "bomb() { bomb | bomb & }; bomb; sleep 1; echo alive", seconds=10, processes=40)
    assert ran.seconds < 12
    assert run(box, tree, "echo well").output == "well\n"


def test_too_much_memory_is_refused(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "python3 -c 'bytearray(1 << 30)'; echo after", memory_mb=300)
    assert "MemoryError" in ran.output and ran.output.endswith("after\n")


@pytest.mark.parametrize("command", [
    "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 900K /dev/zero > f$n; done",
    "python3 -c 'import os\nfor n in range(10000): os.symlink(\"x\", str(n))'"])
def test_too_many_files_leave_those_of_before(box: Sandbox, tree: Path, command: str) -> None:
    before: Changes = {"kept": file("1")}
    ran = run(box, tree, f"echo 2 > kept; {command}", before, files_mb=4)
    assert ran.too_much and ran.changes == before


def test_a_file_that_is_too_large_is_cut_short(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "truncate -s 9M sparse; head -c 9M /dev/zero > big; ls -s", files_mb=4)
    assert "File too large" in ran.output and run(box, tree, "echo well").output == "well\n"


def test_special_files_are_no_changes(box: Sandbox, tree: Path) -> None:
    ran = run(box, tree, "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'; "
                         "mkdir __pycache__; touch __pycache__/x.pyc; echo 1 > real")
    assert ran.changes == {"real": file("1\n")}


def test_permissions_bind_a_user_and_not_root(tree: Path) -> None:
    command = "echo x > f; chmod 000 f; cat f; id -u"
    assert "Permission denied" in run(sandbox(), tree, command).output
    assert run(sandbox(as_root=True), tree, command).output == "x\n0\n"
    changes = run(sandbox(), tree, command).changes
    assert changes["f"] == file("x\n", 0o100000)
    owners = run(sandbox(as_root=True), tree, "chown 0:0 a.txt && stat -c %u a.txt dir/one").output
    assert owners == "0\n0\n"


def test_names_that_are_no_text_come_back_as_they_are(box: Sandbox, tree: Path) -> None:
    first = run(box, tree, "touch -- $'\\xff' $'new\\nline' ' ' '-rf'; mkdir $'\\xfe'; touch $'\\xfe/x'")
    shown = run(box, tree, "ls | wc -l; ls -b -- $'\\xfe'", first.changes)
    assert len(first.changes) == 5 and shown.changes == first.changes and shown.output.endswith("x\n")


def test_a_command_that_cannot_be_run_says_so(box: Sandbox, tree: Path) -> None:
    ran = box.run(tree, {}, ["/no/such/program"])
    assert ran.code == 127 and "/no/such/program: cannot be run" in ran.output


def test_a_sandbox_whose_host_is_ended_ends(tree: Path) -> None:
    box = sandbox()
    failures: list[BaseException] = []

    def waiting() -> None:
        try:
            run(box, tree, "sleep 301.25")
        except SandboxUnavailable as error:
            failures.append(error)

    thread = threading.Thread(target=waiting)
    thread.start()
    while not running("301.25"):
        time.sleep(0.02)
    for child in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in child.read_text().split():
            if b"inside.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)
    thread.join(10)
    deadline = time.monotonic() + 5
    while running("301.25") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert failures and not running("301.25")


def running(word: str) -> bool:
    """Whether a program on this machine was given this argument."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes().split(b"\0"):
                return True
        except OSError:
            pass
    return False


def test_the_way_process_works_on_a_copy(tree: Path) -> None:
    box = Sandbox("process")
    ran = run(box, tree, "echo 1 > new; rm dir/one; cat a.txt; echo $PYTHONPATH")
    assert ran.changes == {"new": file("1\n"), "dir/one": None} and ran.output.startswith("alpha\n/")
    assert (tree / "dir/one").exists() and not (tree / "new").exists()
    assert run(box, tree, "cat new; ls dir; sleep 9", ran.changes, seconds=0.3).output == "1\ntwo\n"


@pytest.mark.slow
def test_the_way_docker_isolates_as_well(tree: Path, base_image: str) -> None:
    assert base_image == LOCAL_BASE
    for as_root in (False, True):
        box = Sandbox("docker", as_root=as_root, image=base_image)
        python = ["python3", "-c", "import os, socket\nopen('new', 'w').write('1'); os.remove('dir/one')\n"
                  "print(open('a.txt').read(), os.getuid())\ntry: socket.create_connection(('1.1.1.1', 80), 2)\n"
                  "except OSError: print('no network')\ntry: open('/traceroom/x', 'w')\nexcept OSError: print('read only')"]
        ran = box.run(tree, {"dir/three": file("3")}, python)
        assert ran.output == f"alpha\n {0 if as_root else 10002}\nno network\nread only\n", ran.output
        assert ran.changes == {"new": file("1"), "dir/one": None, "dir/three": file("3")}
        over = box.run(tree, {}, ["python3", "-c", "while True: print('y' * 99)"], limits=CommandLimits(seconds=2))
        assert over.timed_out and over.seconds < 8


def test_a_sandbox_that_cannot_be_made_says_why(tree: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="needs an image"):
        Sandbox("docker").run(tree, {}, ["true"])
    if os.environ.get("DOCKER_HOST") is None:
        with pytest.raises(SandboxUnavailable, match=r"no sandbox \(docker\)"):
            Sandbox("docker", image="no.such.registry.invalid/x:1").run(tree, {}, ["true"])
