"""Loaded by Python when an agent starts with this folder on its path: watch for its framework, then load the one it hides."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import traceroom_tools  # type: ignore[import-not-found]

HERE = Path(__file__).resolve().parent


def _load_hidden() -> None:
    """Load the `sitecustomize` that would have been loaded without this one."""
    paths = [path for path in sys.path if Path(path or ".").resolve() != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


traceroom_tools.install()
_load_hidden()
