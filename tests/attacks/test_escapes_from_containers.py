"""A list of ways out of an agent's container and a room's: privileges, mounts, kernel files, devices, sockets, networks; none
is open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder import image
from tests.attacks.report import Report
from tests.rooms import TASK, write_room

TRIES = r"""
import ctypes, fcntl, json, mmap, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    def work():
        if getattr(libc, name)(*arguments) < 0:
            raise OSError(ctypes.get_errno(), name)
    return work
def system(number, *arguments):
    return call("syscall", ctypes.c_long(number), *[ctypes.c_long(each) if isinstance(each, int) else each
        for each in arguments])
def write(path, text="1"):
    def work():
        with open(path, "w") as file:
            file.write(text)
    return work
def read(path):
    def work():
        with open(path, "rb") as file:
            if not file.read(16):
                raise OSError(0, "it is masked")
    return work
def reach(host, port):
    return lambda: socket.create_connection((host, port), timeout=2).close()
def made(*kind):
    return lambda: socket.socket(*kind).close()
def unix(path):
    def work():
        with socket.socket(socket.AF_UNIX) as way:
            way.connect(path)
    return work
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
tries = {
    "mount": call("mount", b"none", b"/tmp", b"tmpfs", 0, None), "remount": call("mount", None, b"/", None, 32 | 4096, None),
    "bind": call("mount", b"/proc", b"/tmp", None, 4096, None), "pivot": system(155, b"/tmp", b"/tmp"),
    "chroot": call("chroot", b"/tmp"),
    "root": call("setuid", 0), "group": call("setgid", 0), "groups": call("setgroups", 1, (ctypes.c_uint * 1)(0)),
    "user namespace": call("unshare", 0x10000000), "mount namespace": call("unshare", 0x20000),
    "network namespace": call("unshare", 0x40000000),
    "join": lambda: os.close(os.open("/proc/1/ns/mnt", os.O_RDONLY)) or call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY),
    0)(),
    "module": system(175, b"x", 1, b""), "kernel": system(246, 0, 0, 0, b"", 0), "reboot": system(169, 0xfee1dead, 672274793,
    0x1234567, 0),
    "swap": call("swapon", b"/tmp/x", 0), "host name": call("sethostname", b"x", 1),
    "clock": lambda: __import__("time").clock_settime(0, 0),
    "bpf": system(321, 0, b"\0" * 128, 128), "events": system(298, b"\x01\0\0\0\x70\0\0\0" + b"\0" * 120, 1, -1, -1, 0),
    "keys": system(248, b"user", b"x", b"y", 1, -3),
    "faults": system(323, 0), "handle": system(304, -100, b"\0" * 64, 0), "log of the kernel": system(103, 3, b"\0" * 64, 64),
 "limits": system(160, 7, struct.pack("QQ", 1 << 30, 1 << 30)),
    "priority": call("nice", -5), "real time": system(144, 0, 1, struct.pack("i", 50)), "accounts": call("acct", b"/tmp/x"),
    "quota": system(179, 0x800002, b"x", 0, b""),
    "disk": lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)), "memory device": lambda: os.mknod("/tmp/mem", 0o20600,
    os.makedev(1, 1)),
    "raw socket": made(socket.AF_INET, socket.SOCK_RAW, 1), "packets": made(17, socket.SOCK_RAW, 768),
    "capability": call("prctl", 47, 2, 21, 0, 0), "own program as root": lambda: os.chmod("/tmp", 0o4777)
    if os.stat("/tmp").st_uid != os.getuid() else (_ for _ in ()).throw(OSError(1, "")),
    "metadata": reach("169.254.169.254", 80), "metadata by name": reach("metadata.google.internal", 80),
    "host": reach("172.17.0.1", 22),
    "host by name": reach("host.docker.internal", 80), "names": reach("example.org", 443),
    "this version": reach("fd00:ec2::254", 80),
    **{path: write(path) for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
    "/proc/sys/vm/overcommit_memory",
       "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper", "/sys/power/state",
       "/etc/passwd",
       "/etc/ld.so.preload", "/usr/bin/python3", "/proc/sys/fs/binfmt_misc/register", "/sys/fs/cgroup/memory.max",
       "/sys/fs/cgroup/memory/memory.limit_in_bytes")},
    **{path: read(path) for path in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/sda", "/dev/vda", "/dev/nvme0n1",
    "/dev/kmsg", "/etc/shadow", "/proc/1/root/etc/shadow",
       "/proc/kallsyms-of-none", "/sys/firmware/acpi/tables/DSDT", "/proc/timer_list", "/dev/fuse", "/dev/net/tun", "/dev/kvm",
       "/dev/loop0")},
    **{path: unix(path) for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
    "/run/podman/podman.sock", "/run/systemd/private",
       "/run/dbus/system_bus_socket", "\0/containerd-shim")}}
results = {}
for name, work in tries.items():
    try:
        work()
        results[name] = "open"
    except (OSError, OverflowError, ValueError, AttributeError) as error:
        results[name] = type(error).__name__
mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
setuid = [os.path.join(where, name) for where, _, names in os.walk("/") if not where.startswith(("/proc", "/sys"))
    for name in names
          if not os.path.islink(os.path.join(where, name)) and os.path.isfile(os.path.join(where, name))
              and os.stat(os.path.join(where, name)).st_mode & 0o6000]
print(json.dumps({"open": [name for name, result in results.items() if result == "open"], "n": len(results), "setuid": setuid,
                  "capabilities": [status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
                  "new": status["NoNewPrivs"].strip(),
                  "seccomp": status["Seccomp"].strip(), "user": os.getuid(), "interfaces": os.listdir("/sys/class/net"),
                  "processes": len([each for each in os.listdir("/proc") if each.isdigit()]), "mounts": mounts}))
"""


def attack(folder: Path, share: float) -> Report:
    """Try the list as an agent's program, and as a program in the room's own container."""
    room = write_room(folder / "hall")
    image.make_base() if not image.engine().images.list(image.LOCAL_BASE) else None
    made = image.build(room, image.LOCAL_BASE)
    assert made.image_id, made.skip_reason
    problems, n_tried = [], 0
    with image.start(room, TASK, image_id=made.image_id) as process, image.agent(process, image.LOCAL_BASE) as agent:
        for side, run in (
            ("agent", lambda: agent.run(["python3", "-c", TRIES], timeout_s=300)),
            ("room", lambda: process.transport.run(["python3", "-c", TRIES], b"", 300.0)),
        ):  # type: ignore[attr-defined]
            done = run()
            assert done.exit_code == 0, done.stderr.decode()[-600:]
            result = json.loads(done.stdout)
            n_tried += result["n"]
            problems += [f"{side}: {name} is open" for name in result["open"]]
            problems += (
                [f"{side}: capabilities {result['capabilities']}"]
                if any(int(each, 16) for each in result["capabilities"])
                else []
            )
            problems += [f"{side}: new privileges may be had"] if result["new"] != "1" else []
            problems += [f"{side}: no filter of system calls"] if result["seccomp"] != "2" else []
            problems += [f"{side}: it is user {result['user']}"] if result["user"] == 0 else []
            problems += [f"{side}: interfaces {result['interfaces']}"] if result["interfaces"] != ["lo"] else []
            problems += [
                f"{side}: {mount} is mounted"
                for mount in result["mounts"]
                if "docker.sock" in mount or mount.startswith(("/host", "/var/lib/docker", "/root"))
            ]
        answer = process.call("read_sign", {"at": "gate"})
        problems += [] if not answer.is_error else ["the room no longer answers"]
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_no_way_out_of_a_container_is_open(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
