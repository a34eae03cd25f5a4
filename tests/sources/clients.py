"""An interpreter with the platforms' own clients beside Traceroom, made once in the user's cache."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from tests.consumers.consumers import Consumer
from tests.consumers.interpreters import interpreter

CLIENTS = ("langfuse==5.0.4", "langsmith==0.15.1", "logfire==5.4.0", "mlflow-skinny==3.17.2", "httpx==0.28.1")


def python() -> Path:
    """Return the interpreter; its packages come first, then those that Traceroom needs. Raises Lacking."""
    program = interpreter(Consumer("sources", CLIENTS, ()))
    folder = next((program.parent.parent / "lib").glob("python*/site-packages"))
    (folder / "traceroom-dependencies.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n", "utf-8")
    return program
