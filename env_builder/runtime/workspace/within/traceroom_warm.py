"""A server in a sandbox: it has a program of Python loaded, and each request runs that program in a fork, over a tree.

Arguments: the module that is run as `python3 -m` would. In, on stdin: requests as those of inside.py (a line of JSON, contents
of changed files), one at a time. Out, on stdout: `ready`, then answers as inside.py gives them. A request is read by the fork
alone: nothing of it stays in the server, which no code of a tree ever runs in.

Nobody reads what tests print here, or why they failed: output is dropped, and pytest does not rewrite assertions. Standard
library only.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import runpy
import select
import sys
from contextlib import suppress
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import traceroom_inside  # type: ignore[import-not-found]  # it lies beside it in the sandbox


def main(module: str) -> int:
    """Answer requests until there are no more, or one could not be answered."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    _load(module)
    gc.collect()
    gc.freeze()
    os.write(answers, b"ready\n")
    while True:
        select.select([requests], [], [])
        child = os.fork()
        if child == 0:
            os._exit(_answer(requests, answers, module))
        if os.waitpid(child, 0)[1]:
            return 1


def _load(module: str) -> None:
    """Load a module and what it would load at its start; of pytest its plugins as well."""
    importlib.import_module(module)
    if module == "pytest":
        importlib.import_module("unittest.mock")   # many tests load it, and all of asyncio with it
        importlib.import_module("_pytest.config").get_config()
        for plugin in entry_points(group="pytest11"):
            with suppress(Exception):   # it will fail again, where it is asked for
                importlib.import_module(plugin.module)


def _answer(requests: int, answers: int, module: str) -> int:
    with os.fdopen(requests, "rb") as file, os.fdopen(answers, "wb") as out:
        line = file.readline()
        if not line:
            return 1
        spec = json.loads(line)
        changes = [(path, mode, file.read(size)) for path, mode, size in spec["changes"]]
        try:
            traceroom_inside.run_in_fork(spec, changes, out, partial(_run, module, spec))
        except traceroom_inside.Unable as error:
            out.write(json.dumps({"unable": str(error), "changes": []}).encode() + b"\n")
    return 0


def _run(module: str, spec: dict[str, Any]) -> None:
    """Do what `python3 -m MODULE` does, and end this process as it would end."""
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ.clear()
    os.environ.update(spec["env"])
    sys.argv = [module, *spec["command"][3:], *(["--assert=plain"] if module == "pytest" else [])]
    sys.path[0] = str(Path.cwd())
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    random.seed()
    code: Any = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
