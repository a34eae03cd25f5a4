"""A room as a process that speaks MCP over stdio, or with `--socket` over a Unix socket, to each connection for itself.

    python -m runtime --environment DIRECTORY --task ID [--seed 0] [--conditions …] [--control]   (beside `runtime`)
    python DIRECTORY/runtime --environment DIRECTORY --task ID          (from anywhere)

Without `--task` there is the room without a task, `--at` an instant. Every option can also be given by the environment
variable TRACEROOM_ENVIRONMENT, _TASK, _SEED, _AT, _CONDITIONS, _BIND (one a line), _SOCKET or _CONTROL. Talk goes to stderr,
the protocol alone to stdout, and with a socket nothing but a line once it listens. Exit code: 0 when stdin ended or it was
told to terminate, 2 when it could not begin.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import BinaryIO

if not __package__:  # started by its path: make the folder that holds the package importable, and begin again as its module
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module(Path(__file__).resolve().parent.name, run_name="__main__", alter_sys=True)

from .conditions import SWITCHES
from .environment import Environment
from .mcp import Server


def main(arguments: list[str] | None = None) -> int:
    """Serve one environment until stdin ends."""
    options = _options(arguments)
    _keep_out()
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed by mistake goes to stderr
    try:
        environment = Environment.load_room(options.environment)
        for each in options.bind:
            tool, _, source = each.partition("=")
            environment.bind(tool, source)
        server = _begun(environment, options)
    except (OSError, KeyError, ValueError, ImportError, AttributeError) as error:
        print(f"room: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.freeze()  # the world is never garbage: nothing needs to look through it again
    try:
        if options.socket:
            from .sockets import listen

            listen(Path(options.socket), lambda: _begun(environment.fork(), options), lambda: _tell(protocol))
        else:
            server.serve(open(0, "rb", closefd=False), protocol)  # noqa: SIM115
    except (BrokenPipeError, KeyboardInterrupt):
        return 0
    except OSError as error:
        print(f"room: cannot listen at {options.socket} ({error})", file=sys.stderr)
        return 2
    return 0


def _begun(environment: Environment, options: argparse.Namespace) -> Server:
    """What answers a client, about an episode that has begun as the command line says."""
    server = Server(environment, control=options.control)
    server.begin(options.task, options.seed, options.at, [name for name in options.conditions.split(",") if name])
    return server


def _tell(protocol: BinaryIO) -> None:
    """Say that the room listens."""
    with contextlib.suppress(OSError):
        protocol.write(b"listening\n")
        protocol.flush()


def _keep_out() -> None:
    """Let no other process of this user look into this one or steer it, where the system can (Linux: PR_SET_DUMPABLE)."""
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def _help(prog: str) -> argparse.HelpFormatter:
    """Of one width: to ask the terminal for its own takes longer than to start without."""
    return argparse.HelpFormatter(prog, width=100)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    given = os.environ.get
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(
        prog="room", description="A room that speaks MCP over stdio or a Unix socket.", formatter_class=_help)
    parser.add_argument("--environment", type=Path, default=given("TRACEROOM_ENVIRONMENT", str(here)))
    parser.add_argument("--task", default=given("TRACEROOM_TASK"), help="task id; without it, the room without a task")
    parser.add_argument("--seed", type=int, default=given("TRACEROOM_SEED", "0"))
    parser.add_argument("--at", default=given("TRACEROOM_AT"), help="instant (ISO 8601) of a room without a task")
    parser.add_argument("--conditions", default=given("TRACEROOM_CONDITIONS", ""),
                        help=f"what tools do in production beside answering, with commas between: {', '.join(SWITCHES)}")
    parser.add_argument("--bind", action="append", default=given("TRACEROOM_BIND", "").splitlines(), metavar="TOOL=SOURCE",
                        help="the real thing that answers what is not on record; may be repeated")
    parser.add_argument("--socket", default=given("TRACEROOM_SOCKET"), help="path of a Unix socket to listen at")
    parser.add_argument("--control", action="store_true", default=given("TRACEROOM_CONTROL") == "1",
                        help="also answer traceroom/* (for the host, never for the agent)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
