"""Run an environment as a process that serves MCP over stdio, or with `--socket` to each connection of a Unix socket.

    python -m runtime --environment DIRECTORY --task ID [--seed 0] [--perturbations …] [--control]   (in `runtime`'s folder)
    python DIRECTORY/runtime --environment DIRECTORY --task ID          (from anywhere)

Without `--task` the environment has no task; `--at` sets its instant. Each option can also be given by an environment
variable: TRACEROOM_ENVIRONMENT, _TASK, _SEED, _AT, _PERTURBATIONS, _BIND (one a line), _SOCKET, _TALK or _CONTROL. Messages
go to stderr; stdout has the protocol alone, and with a socket one line once it listens. Exit code: 0 after stdin ended or
SIGTERM, 2 if it could not start.
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

if not __package__:  # started by its path: make the package importable, and start again as its module
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module(Path(__file__).resolve().parent.name, run_name="__main__", alter_sys=True)

from .environment import Environment
from .mcp import McpServer
from .perturbations import SWITCHES


def main(arguments: list[str] | None = None) -> int:
    """Serve one environment until stdin ends."""
    options = _options(arguments)
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # anything that is printed by mistake goes to stderr
    try:
        environment = Environment.load_room(options.environment)
        for each in options.bind:
            tool, _, source = each.partition("=")
            environment.bind(tool, source)
        server = _begin(environment, options)
    except (OSError, KeyError, ValueError, ImportError, AttributeError) as error:
        print(f"environment: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.freeze()  # the world is never garbage: the collector need not look through it
    try:
        if options.socket:
            from .sockets import listen

            listen(Path(options.socket), lambda: _begin(environment.fork(), options), lambda: _announce(protocol))
        else:
            server.serve(open(0, "rb", closefd=False), protocol)  # noqa: SIM115
    except (BrokenPipeError, KeyboardInterrupt):
        return 0
    except OSError as error:
        print(f"environment: cannot listen on {options.socket} ({error})", file=sys.stderr)
        return 2
    return 0


def _begin(environment: Environment, options: argparse.Namespace) -> McpServer:
    """Return a client's server, whose episode has begun as the command line says."""
    talk = options.talk or ("off" if options.control else "auto")
    server = McpServer(environment, options.control, {"auto": None, "on": True, "off": False}[talk])
    server.begin(options.task, options.seed, options.at, [name for name in options.perturbations.split(",") if name])
    return server


def _announce(protocol: BinaryIO) -> None:
    with contextlib.suppress(OSError):
        protocol.write(b"listening\n")
        protocol.flush()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    default = os.environ.get
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(
        prog="environment", description="Serve an environment over MCP on stdio or a Unix socket.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100))  # asking the terminal for its width takes long
    parser.add_argument("--environment", type=Path, default=default("TRACEROOM_ENVIRONMENT", str(here)))
    parser.add_argument("--task", default=default("TRACEROOM_TASK"), help="task id; without it, the environment has no task")
    parser.add_argument("--seed", type=int, default=default("TRACEROOM_SEED", "0"))
    parser.add_argument("--at", default=default("TRACEROOM_AT"), help="instant (ISO 8601) of an environment without a task")
    parser.add_argument("--perturbations", default=default("TRACEROOM_PERTURBATIONS", default("TRACEROOM_CONDITIONS", "")),
                        help=f"what tools do in production beside answering, separated by commas: {', '.join(SWITCHES)}")
    parser.add_argument("--bind", action="append", default=default("TRACEROOM_BIND", "").splitlines(), metavar="TOOL=SOURCE",
                        help="the real tool that answers what is not on record; may be repeated")
    parser.add_argument("--socket", default=default("TRACEROOM_SOCKET"), help="path of a Unix socket to listen on")
    parser.add_argument("--talk", choices=("auto", "on", "off"), default=default("TRACEROOM_TALK"),
                        help="tools `say` and `finish`; auto: where somebody speaks to the agent (default without --control)")
    parser.add_argument("--control", action="store_true", default=default("TRACEROOM_CONTROL") == "1",
                        help="also answer traceroom/* (for the host, never for the agent)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
