"""What answers from outside the log in a rollout: things bound to tools, and a model, as command line and configuration say.

In: `TOOL=SOURCE` options, a configuration file, an environment's directory. Out: tool -> source, checked; and the model's door.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from env_builder.runtime.bindings import kinds
from extractors import configuration
from pipelines.resources import Ask, ask_from_environment
from warehouse.errors import InputError, Missing, Unavailable


def bindings(environment: Path, options: Iterable[str], config: str | None) -> dict[str, str]:
    """Tool -> source: those of the configuration whose tool is in this environment, and those of `options`, which win.

    Raises InputError (no source, a kind that there is not) and Missing (no such tool).
    """
    with (environment / "tools.jsonl").open(encoding="utf-8") as lines:
        tools = {json.loads(line)["name"] for line in lines}
    told = configuration.load(config).bindings if config else {}
    found = {tool: source for tool, source in told.items() if tool in tools}
    for option in options:
        tool, _, source = option.partition("=")
        if tool not in tools:
            raise Missing.named("tool", tool, tools, "write --bind TOOL=SOURCE")
        found[tool] = source
    for tool, source in found.items():
        kind, colon, what = source.partition(":")
        if not (colon and what and kind in kinds()):
            where = str(config) if told.get(tool) == source else f"--bind {tool}={source}"
            raise InputError(
                f"nothing can be bound to the tool {tool!r} by {source!r}", where,
                f"write KIND:WHAT with one of these kinds: {', '.join(kinds())}")
    return dict(sorted(found.items()))


def live(wanted: bool) -> Ask | None:
    """The model that answers live where that is asked for; what it does not answer stays unknown, with a warning. Raises
    InputError where none is configured."""
    ask = ask_from_environment() if wanted else None
    if wanted and ask is None:
        raise InputError(
            "no model is configured to answer", "--ask", "set TRACEROOM_MODEL and TRACEROOM_MODEL_URL (docs/configuration.md)")
    return None if ask is None else partial(_said, ask)


def _said(ask: Ask, prompt: str) -> str:
    """The model's text, empty where it does not answer."""
    try:
        return ask(prompt)
    except Unavailable as error:
        logging.getLogger(__name__).warning("the call stays unknown: %s", error)
        return ""
