"""Render pages: templates that escape everything, and filters for values.

Log content may be hostile, also to the eye: control characters, changes of writing direction and invisible characters are shown
by their number. Only addresses made here become links."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from extractors.tasks.names import asked_by
from pipelines.inspection.views import TURNS
from pipelines.screen import duration, many
from warehouse.vocabulary import DEFINITIONS, OUTCOMES, outcome_of

MOST_SIGNS = 4000
"""Characters of one text on a page; the rest has a page of its own."""
SHORT = 400
"""Characters of an answer that is open from the start."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]")


def page(name: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return the page of a template."""
    return HTMLResponse(_templates().get_template(f"{name}.html.jinja").render(**values), status)


def visible(text: str) -> str:
    """Return the text with everything in it to be seen."""
    return _HIDDEN.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", text)


def address(path: str, **parameters: object) -> str:
    """Return an address of this server."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def turn_address(session_id: str, position: int) -> str:
    """Return the address of a turn on its session's page."""
    begin = position // TURNS * TURNS
    return f"{address('/session', id=session_id, **{'from': begin or None})}#t{position}"


def percent(value: float | None) -> str:
    """Return a share in [0, 1]."""
    return "–" if value is None else f"{100 * value:.0f} %"


def instant(value: datetime | None) -> str:
    """Return an instant (UTC) to the second."""
    return "–" if value is None else f"{value:%Y-%m-%d %H:%M:%S}"


def number(value: float | None) -> str:
    """Return a whole number with its thousands apart; another to three digits."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def pretty(text: str | None) -> str:
    """JSON text as lines to read; what is no JSON object or list as it is."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return text or ""
    return json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, dict | list) else str(text)


def cut(text: str | None, most: int = MOST_SIGNS) -> str:
    """Return the beginning of a text."""
    text = text or ""
    return text if len(text) <= most else f"{text[:most]}…"


def words(name: str) -> str:
    """Return a name of the house as words."""
    return name.replace("_", " ")


def goal_text(goal: str | None) -> str:
    """Return a goal as it is read: requests in words."""
    return asked_by(goal or "")


def middle(text: str, most: int = 24) -> str:
    """Return the text, a long one without its middle: ids often begin alike."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[1 - most // 2:]}"


@cache
def style() -> str:
    """Return the stylesheet: the report's, what the browser has beside it, and bars by percent."""
    written = [files(package).joinpath(name).read_text("utf-8") for package, name in (
        ("pipelines.reporting", "page.css"), ("pipelines.browser", "browser.css"))]
    return "\n".join([*written, *(f".b{n} {{ margin-left: {n}%; }} .w{n + 1} {{ width: {n + 1}%; }}" for n in range(100))])


def _put(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else "" if value is None else value


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("pipelines.browser"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_put)
    shown: Mapping[str, Any] = {
        "percent": percent, "instant": instant, "number": number, "duration": duration, "pretty": pretty, "cut": cut,
        "words": words, "outcome": outcome_of, "goal_text": goal_text, "middle": middle, "many": many}
    templates.filters.update(shown)
    templates.globals.update(
        address=address, turn_address=turn_address,
        OUTCOMES=tuple(OUTCOMES), DEFINITIONS=DEFINITIONS, MOST_SIGNS=MOST_SIGNS, SHORT=SHORT)
    return templates
