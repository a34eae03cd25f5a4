"""Adapters: which frameworks' tool functions can be replaced in an agent's own process, and how that process loads them.

Python loads `preload/sitecustomize.py` by PYTHONPATH, Node loads `preload/traceroom_tools.mjs` by NODE_OPTIONS. What they
replace is in these files, which need nothing of ours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from warehouse.errors import Missing

PRELOAD = Path(__file__).resolve().parent / "preload"
PYTHON = ("claude-agent", "crewai", "langgraph", "openai-agents", "pydantic-ai")
NODE = ("vercel-ai",)
ADAPTERS = (*PYTHON, *NODE)
"""Frameworks, as `--adapter` names them; `auto`: whichever the agent loads."""


def check(names: Sequence[str]) -> None:
    """Raise Missing if there is no such adapter."""
    for name in names:
        if name not in (*ADAPTERS, "auto"):
            raise Missing.named("adapter", name, (*ADAPTERS, "auto"))


def preloaded(names: Sequence[str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which an agent's process loads the adapters, beside those that it has."""
    wanted = set(ADAPTERS) if "auto" in names else set(names)
    given: dict[str, str] = {}
    if wanted & set(PYTHON):
        given["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PRELOAD), variables.get("PYTHONPATH"))))
        given["TRACEROOM_ADAPTERS"] = ",".join(sorted(wanted & set(PYTHON)))
    if wanted & set(NODE):
        load = f"--import {(PRELOAD / 'traceroom_tools.mjs').as_uri()}"
        given["NODE_OPTIONS"] = " ".join(filter(None, (variables.get("NODE_OPTIONS"), load)))
    return given
