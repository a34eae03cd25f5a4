"""What an element does when it is clicked, as far as the page says so without running a script.

In: a flat page. Out: the element that answers a click, the question it asks first, what it shows or hides. Sees: what HTML
defines, `confirm("…")` written in an attribute, and the attributes by which pages mark a toggle (aria-expanded, aria-controls,
aria-haspopup, popovertarget, role=tab, data-toggle and data-target as widget libraries write them). Does not see: listeners.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from . import forms
from .flat import CONTROLS, FlatPage
from .styling import Look

_CONFIRM = re.compile(r"""^\s*(?:javascript:)?\s*(?:return\s+|if\s*\(\s*!?\s*)?(?:window\.)?confirm\(\s*"""
                      r"""(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\)""").match
_SENDS = re.compile(r"^\s*(?:return\s+)?(?:this\.)?form\.(?:submit|requestSubmit)\(\)\s*;?\s*$").match
_TOGGLES = ("aria-expanded", "aria-haspopup", "data-toggle", "data-bs-toggle", "popovertarget")
_TARGETS = ("aria-controls", "data-target", "data-bs-target", "popovertarget", "href")
_DISMISSES = ("data-dismiss", "data-bs-dismiss")


def answering(page: FlatPage, number: int) -> int | None:
    """Return the element that answers a click on another: itself, or the innermost around it that does something."""
    for each in (number, *page.ancestors(number)):
        tag, attributes = page.tags[each], page.attributes[each]
        if tag in ("label", "option", *CONTROLS) or (tag in ("a", "area") and "href" in attributes):
            return each
        if tag == "summary" and is_summary(page, each):
            return each
        if is_toggle(page, each) or any(name in attributes for name in _DISMISSES):
            return each
    return None


def is_summary(page: FlatPage, number: int) -> bool:
    """Whether a summary is the one that opens its details."""
    parent = page.parents[number]
    return parent >= 0 and page.tags[parent] == "details" and number == next(
        (each for each in page.elements_of(parent) if page.tags[each] == "summary"), None)


def question(page: FlatPage, number: int, event: str) -> str | None:
    """Return what an element asks before it does something, as its attribute `event` plainly says."""
    match = _CONFIRM(page.attributes[number].get(event, ""))
    if match is None:
        return None
    return re.sub(r"\\(.)", lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), match[1] or match[2] or "")


def sends_on_change(page: FlatPage, number: int) -> bool:
    """Whether a control plainly sends its form as soon as it is changed."""
    return bool(_SENDS(page.attributes[number].get("onchange", "")))


def is_toggle(page: FlatPage, number: int) -> bool:
    """Whether an element is marked as showing and hiding another."""
    attributes = page.attributes[number]
    return any(name in attributes for name in _TOGGLES) or attributes.get("role") == "tab"


def toggled(page: FlatPage, look: Look, opened: Mapping[int, bool], number: int) -> Mapping[int, bool] | None:
    """Return what is open after a click on an element that shows, hides or dismisses another; None: it does not."""
    attributes = page.attributes[number]
    if any(name in attributes for name in _DISMISSES):
        outer = next((each for each in page.ancestors(number) if opened.get(each)), None)
        return None if outer is None else {**opened, outer: False}
    targets = _shown_by(page, look, number)
    if not targets:
        return None
    if "aria-haspopup" in attributes:   # one menu is open at a time
        others = [each for each, is_open in opened.items() if is_open and each != number
                  and "aria-haspopup" in page.attributes[each]]
        opened = {**opened, **{each: False for other in others for each in (other, *_shown_by(page, look, other))}}
    if attributes.get("role") == "tab" or {attributes.get("data-toggle"), attributes.get("data-bs-toggle")} & {"tab", "pill"}:
        return {**opened, **{pane: pane in targets for target in targets for pane in _panes(page, target)}}
    show = any(look.removed[target] or not look.shown[target] for target in targets)
    return {**opened, **dict.fromkeys(targets, show), **({number: show} if "aria-expanded" in attributes else {})}


def _shown_by(page: FlatPage, look: Look, number: int) -> list[int]:
    """Return the elements that a toggle shows and hides."""
    attributes = page.attributes[number]
    targets = _targets(page, number) if is_toggle(page, number) else []
    if not targets and (attributes.get("aria-haspopup") or "aria-expanded" in attributes):
        targets = _menus(page, look, number)
    return targets


def _targets(page: FlatPage, number: int) -> list[int]:
    """Return the elements that a toggle names."""
    attributes = page.attributes[number]
    for name in _TARGETS:
        text = attributes.get(name, "").strip()
        if name in ("data-target", "data-bs-target", "href"):
            text = text[1:] if text.startswith("#") else ""
        targets = [page.by_id[each] for each in text.split() if each in page.by_id]
        if targets:
            return targets
    return []


def _menus(page: FlatPage, look: Look, number: int) -> list[int]:
    """Return the menu of a toggle that names none: the next element that it labels, else the next hidden sibling.

    Pages give the same id to many toggles, so what is labelled comes after the toggle, and before it only for want of others.
    """
    name = page.attributes[number].get("id")
    labelled = [each for each in range(len(page.tags)) if name and name in page.attributes[each].get(
        "aria-labelledby", "").split()]
    if labelled:
        return [next((each for each in labelled if each > number), labelled[0])]
    siblings = page.elements_of(page.parents[number]) if page.parents[number] >= 0 else [number]
    after = siblings[siblings.index(number) + 1:]
    return [each for each in after if look.removed[each] or page.attributes[each].get("role") == "menu"][:1]


def _panes(page: FlatPage, target: int) -> Sequence[int]:
    """Return the panes of a set of tabs: its siblings with the same role, or else the same first class."""
    def mark(number: int) -> tuple[str, str]:
        attributes = page.attributes[number]
        return attributes.get("role", ""), (attributes.get("class", "").split() or [""])[0]
    siblings = page.elements_of(page.parents[target]) if page.parents[target] >= 0 else [target]
    return [each for each in siblings if mark(each) == mark(target)]


def labelled_control(page: FlatPage, label: int) -> int | None:
    """Return the control of a label."""
    name = page.attributes[label].get("for")
    if name is not None:
        target = page.by_id.get(name)
        return target if target is not None and page.tags[target] in CONTROLS else None
    return next((each for each in page.below(label) if page.tags[each] in CONTROLS
                 and forms.kind_of(page, each) != "hidden"), None)
