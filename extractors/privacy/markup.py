"""Values in a page that are credentials by their names: fields of forms, notes in its head, variables of its scripts.

In: the text of a page of HTML, and which names are credentials'. Out: the same text, with a mark in the place of each value.
Sees: `value` and `content` of a tag with such a `name`, `id` or `property`, of a password's field whatever it is called, texts
of areas, texts that a script gives such a name. Does not see: a script that puts a name together, attributes of other tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_MARKUP = re.compile(r"<(?i:html|!doctype|input|meta|form|textarea|script)\b")
_SCRIPTED = re.compile(
    r"(?P<name>[A-Za-z][\w$-]{1,63})[\"']?\s{0,4}[:=]\s{0,4}(?P<quote>[\"'])(?P<value>[^\"'\s<>]{6,})(?P=quote)")
_TAG = re.compile(r"<(?i:input|meta|button|param|option)\b[^<>]{0,4000}>")
_ATTRIBUTE = re.compile(r"(?P<name>[\w:-]+)\s*=\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<plain>[^\s\"'>]+))")
_AREA = re.compile(
    r"(?is)(?P<begin><textarea\b[^<>]*?\bname=[\"']?(?P<name>[\w.-]+)[^<>]*>)(?P<value>[^<]*)(?P<end></textarea>)")


def is_markup(text: str) -> bool:
    """Whether a text holds tags of a page."""
    return _MARKUP.search(text) is not None


def cut_markup(text: str, is_credential: Callable[[str], bool], mark: str) -> str:
    """Return a page without the values of credentials."""

    def of_script(match: re.Match[str]) -> str:
        start = match.start("value") - match.start()
        return match[0][:start] + mark + match["quote"] if is_credential(match["name"]) else match[0]

    def of_area(match: re.Match[str]) -> str:
        holds = is_credential(match["name"]) and match["value"].strip()
        return f"{match['begin']}{mark}{match['end']}" if holds else match[0]

    def of_tag(match: re.Match[str]) -> str:
        attributes = {each["name"].lower(): _value(each) for each in _ATTRIBUTE.finditer(match[0])}
        is_secret = attributes.get("type", "").lower() == "password" or any(
            is_credential(attributes.get(name, "")) for name in ("name", "id", "property"))
        return _ATTRIBUTE.sub(of_attribute, match[0]) if is_secret else match[0]

    def of_attribute(match: re.Match[str]) -> str:
        return f'{match["name"]}="{mark}"' if match["name"].lower() in ("value", "content") and _value(match) else match[0]

    return _AREA.sub(of_area, _TAG.sub(of_tag, _SCRIPTED.sub(of_script, text)))


def _value(attribute: re.Match[str]) -> str:
    return next(filter(None, attribute.group("double", "single", "plain")), "")
