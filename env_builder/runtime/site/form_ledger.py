"""What posted forms changed, as documents: the part of a site's state that an episode is graded by.

In: laws of forms (form_laws.jsonl, learnt from logs), accepted posts, and the page on which each form stood. Out: a
document for each entity that a form changed. A form that shows what was last posted to it *updates*: its document holds the
fields that differ from what the form showed first, so do and undo leave nothing. Any other form *appends*: its document counts
equal posts. A form that only opens or ends a session changes nothing that counts.
Sees: visible fields that were changed, and hidden ones that always have one value (which of several works it is). Does not see:
hidden fields that vary and are no keys (tokens), effects of a post on other entities, an append that another form takes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from ..canonical import canonical, digest
from .trees import Element

__all__ = ["UPDATE", "FormLaw", "FormLaws", "FormLedger", "Post", "ShownForm", "changed_fields", "entity_of", "forms_on",
           "shown_form", "with_values"]

UPDATE, APPEND, SESSION = "update", "append", "session"
_DIGITS = re.compile(r"\d+")
_NO_VALUE = frozenset({"submit", "button", "image", "reset", "file"})
Pairs = Sequence[tuple[str, str]]


class ShownForm(NamedTuple):
    """A form as a page shows it."""

    url: str
    """Where it is posted to: path and query."""
    values: Mapping[str, tuple[str, ...]]
    """What each field holds as shown; fields that send nothing (a box not ticked) are absent."""
    visible: frozenset[str]
    """Names of fields that people see."""


class FormLaw(NamedTuple):
    """What a kind of posts does."""

    route: str
    names: frozenset[str]
    """Names of its fields, digits as #."""
    constants: Mapping[str, str]
    """Hidden fields that always have one value."""
    visible: frozenset[str]
    """Names of fields that count, digits as #: of an update those that people see, of an append all but secrets."""
    effect: str
    keys: frozenset[str] = frozenset()
    """Names of hidden fields that say which entity the form is about, where the address does not."""

    def to_row(self) -> dict[str, Any]:
        """Return the law as a row of form_laws.jsonl."""
        return {"route": self.route, "names": sorted(self.names), "constants": dict(sorted(self.constants.items())),
                "visible": sorted(self.visible), "effect": self.effect,
                **({"keys": sorted(self.keys)} if self.keys else {})}


class Post(NamedTuple):
    """A form that was posted and accepted."""

    route: str
    """Template of the path."""
    parameters: Sequence[str]
    """Values of the template's varying segments, in order."""
    form: Pairs
    shown: ShownForm | None
    """The form as the page before showed it; None: no page of the episode did."""


def general(name: str) -> str:
    """Return a field's name without numbers of rows."""
    return _DIGITS.sub("#", name)


class FormLaws:
    """The laws of a site's forms."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._laws: dict[str, list[FormLaw]] = {}
        for row in rows:
            law = FormLaw(row["route"], frozenset(row["names"]), row["constants"], frozenset(row["visible"]), row["effect"],
                          frozenset(row.get("keys", ())))
            self._laws.setdefault(law.route, []).append(law)

    def law(self, route: str, form: Pairs) -> FormLaw | None:
        """Return the law of a post; None where no form like it was ever posted."""
        values = dict(form)
        names = {general(name) for name in values}
        fitting = [law for law in self._laws.get(route, ()) if all(
            values.get(name) == value for name, value in law.constants.items())]
        return max(fitting, key=lambda law: (
            len(law.constants), len(law.names & names) - len(law.names ^ names), sorted(law.names)), default=None)


def entity_of(law: FormLaw | None, parameters: Sequence[str], form: Pairs) -> tuple[str, ...]:
    """Return what a post is about: what its address says, then its own keys."""
    keys = law.keys if law is not None else frozenset()
    return (*parameters, *(value for name, value in sorted(form) if name in keys and value not in parameters))


def changed_fields(shown: ShownForm | None, form: Pairs) -> tuple[str, ...]:
    """Return the names of the fields that a post changes, in the order in which they are sent; none where no page shows it."""
    if shown is None:
        return ()
    given = _grouped(form)
    return tuple(name for name in {**given, **shown.values}
                 if name in shown.visible and given.get(name, ()) != shown.values.get(name, ()))


class _Document(NamedTuple):
    """An entity that forms changed."""

    shown: Mapping[str, tuple[str, ...]]
    """What the form showed before it was first posted; of an append nothing."""
    values: Mapping[str, tuple[str, ...]]
    n: int
    """How often it was appended; 0: it is an update."""


class FormLedger:
    """What an episode's posts changed so far; never changed itself."""

    __slots__ = ("_documents", "_laws")

    def __init__(self, laws: FormLaws, documents: Mapping[tuple[str, str], _Document] | None = None) -> None:
        self._laws = laws
        self._documents = documents or {}

    def posted(self, post: Post) -> FormLedger:
        """Return the ledger after an accepted post."""
        law = self._laws.law(post.route, post.form)
        if law is not None and law.effect == SESSION:
            return self
        given = _grouped(post.form)
        shown = post.shown.values if post.shown is not None else {}
        constants = law.constants if law is not None else {}
        kind = _kind(post.route)
        entity = ",".join(entity_of(law, post.parameters, post.form))
        documents = dict(self._documents)
        if law is not None and law.effect == UPDATE:
            names = [name for name in {**shown, **given} if general(name) in law.visible]
            changed = {name: given.get(name, ()) for name in names if given.get(name, ()) != shown.get(name, ())}
            before = documents.get((kind, entity), _Document({}, {}, 0))
            documents[kind, entity] = _Document({**{name: shown.get(name, ()) for name in changed}, **before.shown},
                                                {**before.values, **changed}, 0)
        else:
            counted = law.visible if law is not None else {general(name) for name in given}
            values = {name: value for name, value in given.items() if general(name) in counted and value != ("",)}
            entity = " ".join([entity, *(f"{name}={value}" for name, value in sorted(constants.items()))]).strip()
            key = f"{entity} {digest(canonical({name: list(value) for name, value in values.items()}))[:12]}".strip()
            n = documents[kind, key].n if (kind, key) in documents else 0
            documents[kind, key] = _Document({}, values, n + 1)
        return FormLedger(self._laws, documents)

    def updated(self, route: str, parameters: Sequence[str], form: Pairs = ()) -> Mapping[str, tuple[str, ...]]:
        """Return the values that updates gave to the fields of an entity's forms; `form`: what this one would send."""
        entity = entity_of(self._laws.law(route, form), parameters, form)
        document = self._documents.get((_kind(route), ",".join(entity)))
        return document.values if document is not None and not document.n else {}

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was posted so far."""
        return not self._documents

    def documents(self) -> list[dict[str, str]]:
        """Return the new values of each changed entity, several of a field joined by a comma."""
        return [{field: ", ".join(value) for field, value in document.values.items()
                 if document.n or value != document.shown.get(field, ())} for _, document in sorted(self._documents.items())]

    def texts(self) -> dict[tuple[str, str], str]:
        """Return (class, key) -> JSON text of each changed entity."""
        texts: dict[tuple[str, str], str] = {}
        for name, document in sorted(self._documents.items()):
            values = {field: list(value) if len(value) != 1 else value[0] for field, value in document.values.items()
                      if document.n or value != document.shown.get(field, ())}
            if document.n:
                texts[name] = canonical({"posted": values, "times": document.n})
            elif values:
                texts[name] = canonical({"set": values})
        return texts


def _kind(route: str) -> str:
    return "form " + ".".join("*" if part.startswith("{") else part for part in route.strip("/").split("/"))


def _grouped(pairs: Pairs) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        values[name] = (*values.get(name, ()), value)
    return values


def shown_form(page: Element, page_url: str, url: str, names: Iterable[str]) -> ShownForm | None:
    """Return the form of a page that is posted to an address; of several the one whose fields are most like these."""
    wanted = set(names)
    forms = [form for form in forms_on(page, page_url) if form.url == url]
    return max(forms, key=lambda form: len(wanted & form.values.keys()) - len(wanted ^ form.values.keys()), default=None)


def forms_on(page: Element, page_url: str) -> list[ShownForm]:
    """Return the forms of a page that are posted, in its order."""
    forms: list[ShownForm] = []
    for form in page.elements():
        if form.tag == "form" and form.attributes.get("method", "").lower() == "post":
            address = urlsplit(urljoin(page_url, form.attributes.get("action") or page_url))
            url = address.path + (f"?{address.query}" if address.query else "")
            pairs: list[tuple[str, str]] = []
            visible: set[str] = set()
            for control in form.elements():
                name = control.attributes.get("name")
                if name and control.tag in ("input", "select", "textarea"):
                    pairs += [(name, value) for value in _sent(control)]
                    if control.attributes.get("type", "").lower() not in ("hidden", *_NO_VALUE):
                        visible.add(name)
            forms.append(ShownForm(url, _grouped(pairs), frozenset(visible)))
    return forms


def with_values(element: Element, values: Mapping[str, tuple[str, ...]]) -> Element:
    """Return a copy of a form that shows these values in the fields that people see; parts without such fields are shared."""
    name, kind = element.attributes.get("name", ""), element.attributes.get("type", "text").lower()
    if element.tag in ("input", "select", "textarea"):
        if name not in values or kind == "hidden" or kind in _NO_VALUE:
            return element
        return _showing(element, kind, values[name])
    children = [with_values(child, values) if isinstance(child, Element) else child for child in element.children]
    if all(one is other for one, other in zip(children, element.children, strict=True)):
        return element
    return Element(element.tag, element.attributes, children)


def _showing(control: Element, kind: str, values: tuple[str, ...]) -> Element:
    """Return a control that shows these values."""
    if control.tag == "textarea":
        return Element("textarea", control.attributes, ["".join(values[:1])])
    if control.tag == "select":
        return _choosing(control, values)
    own = {name: value for name, value in control.attributes.items() if name != "checked"}
    if kind in ("checkbox", "radio"):
        is_chosen = control.attributes.get("value", "on") in values
        return Element("input", {**own, "checked": ""} if is_chosen else own, control.children)
    return Element("input", {**own, "value": "".join(values[:1])}, control.children)


def _choosing(part: Element, values: tuple[str, ...]) -> Element:
    if part.tag == "option":
        rest = {name: value for name, value in part.attributes.items() if name != "selected"}
        return Element("option", {**rest, "selected": ""} if _option_value(part) in values else rest, part.children)
    return Element(part.tag, part.attributes, [_choosing(child, values) if isinstance(child, Element) else child
                                               for child in part.children])


def _sent(control: Element) -> list[str]:
    """Return what a control would send as it is shown."""
    attributes = control.attributes
    if "disabled" in attributes:
        return []
    if control.tag == "textarea":
        return ["".join(child for child in control.children if isinstance(child, str))]
    if control.tag == "select":
        options = [each for each in control.elements() if each.tag == "option"]
        chosen = [each for each in options if "selected" in each.attributes]
        if not chosen and "multiple" not in attributes:
            chosen = options[:1]
        return [_option_value(each) for each in chosen]
    kind = attributes.get("type", "text").lower()
    if kind in _NO_VALUE or (kind in ("checkbox", "radio") and "checked" not in attributes):
        return []
    return [attributes.get("value", "on" if kind in ("checkbox", "radio") else "")]


def _option_value(option: Element) -> str:
    text = " ".join("".join(child for child in option.children if isinstance(child, str)).split())
    return option.attributes.get("value", text)
