"""Controls of a page: what stands in them, what a browser lets through, and what a form sends.

In: a flat page, edits (number of a control -> what stands in it now), immutable. Out: values, names and values of a
submission, the first field that a browser would refuse. Follows the HTML standard's sections on form submission and constraint
validation, with Chromium's messages. Does not see: validity that scripts set; years after 9999; where on a picture a click was
(its coordinates are 0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import TypeAlias
from urllib.parse import urlsplit

from .finding import may_be_slow
from .flat import FlatPage
from .roles import input_type, is_disabled

Edit: TypeAlias = "str | bool | tuple[int, ...] | tuple[str, ...]"
"""A text; whether it is checked; numbers of the options that are selected; names of files."""
Edits: TypeAlias = Mapping[int, Edit]
TEXTS = frozenset({
    "date", "datetime-local", "email", "month", "number", "password", "search", "tel", "text", "time", "url", "week"})
"""Types of inputs that take what is typed."""
_LENGTHS = frozenset({"email", "password", "search", "tel", "text", "url"})
_BUTTONS = frozenset({"button", "image", "reset", "submit"})
_RANGED = frozenset({"date", "datetime-local", "month", "number", "range", "time", "week"})
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?").fullmatch
_EMAIL = re.compile(r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
                    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*").fullmatch
_SPELLED = {
    "number": (_NUMBER, "a number"), "range": (_NUMBER, "a number"),
    "color": (re.compile(r"#[0-9a-fA-F]{6}").fullmatch, "#RRGGBB"),
    "date": (re.compile(r"\d{4}-\d\d-\d\d").fullmatch, "YYYY-MM-DD"),
    "month": (re.compile(r"\d{4}-\d\d").fullmatch, "YYYY-MM"), "week": (re.compile(r"\d{4}-W\d\d").fullmatch, "YYYY-Www"),
    "time": (re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?").fullmatch, "HH:MM"),
    "datetime-local": (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?").fullmatch, "YYYY-MM-DDTHH:MM")}
"""How a browser spells what a field of a type holds."""


def kind_of(page: FlatPage, number: int) -> str:
    """Return what a control is: the type of an input or button, else its tag."""
    tag, attributes = page.tags[number], page.attributes[number]
    if tag == "input":
        return input_type(attributes)
    if tag == "button":
        kind = attributes.get("type", "").strip().lower()
        return kind if kind in ("button", "reset") else "submit"
    return tag


def takes_text(page: FlatPage, number: int) -> bool:
    """Whether a person can type into an element."""
    return page.tags[number] == "textarea" or (page.tags[number] == "input" and kind_of(page, number) in TEXTS)


def value(page: FlatPage, edits: Edits, number: int) -> str:
    """Return the text that stands in an input or a textarea."""
    edit = edits.get(number)
    if isinstance(edit, str):
        return edit
    attributes = page.attributes[number]
    if page.tags[number] == "textarea":
        return page.text(number).replace("\r\n", "\n").replace("\r", "\n")
    text, kind = attributes.get("value", ""), kind_of(page, number)
    if kind in _SPELLED and kind not in ("color", "range"):
        return text if _is_spelled(kind, text) else ""
    if kind == "range":
        return _range_value(attributes, text)
    if kind == "color":
        return text.lower() if re.fullmatch(r"#[0-9a-fA-F]{6}", text) else "#000000"
    return text.replace("\n", "").replace("\r", "") if kind in _LENGTHS else text


def _range_value(attributes: dict[str, str], text: str) -> str:
    low, high = _number(attributes.get("min"), 0.0), _number(attributes.get("max"), 100.0)
    middle = low if high < low else low + (high - low) / 2
    reckoned = max(low, min(_number(text, middle), max(low, high)))
    step = attributes.get("step", "1").strip().lower()
    if step != "any" and high > low:
        each = _number(step, 1.0) if _number(step, 1.0) > 0 else 1.0
        n_steps = (reckoned - low) / each
        reckoned = low + each * min(n_steps // 1 + (n_steps % 1 >= .5), (high - low) / each // 1)
    return str(int(reckoned)) if reckoned.is_integer() else str(reckoned)


def _number(text: str | None, default: float) -> float:
    return float(text) if text is not None and _NUMBER(text) else default


def is_checked(page: FlatPage, edits: Edits, number: int) -> bool:
    """Whether a checkbox or radio button is checked; of a group's several checked ones the last is."""
    edit = edits.get(number)
    if isinstance(edit, bool):
        return edit
    if "checked" not in page.attributes[number]:
        return False
    return kind_of(page, number) != "radio" or not any(
        each > number and "checked" in page.attributes[each] for each in radio_group(page, number))


def radio_group(page: FlatPage, number: int) -> list[int]:
    """Return the radio buttons of one group, the given one among them."""
    name, form = page.attributes[number].get("name", ""), owner(page, number)
    if not name:
        return [number]
    return [each for each in page.of_tag.get("input", ()) if page.attributes[each].get("name") == name
            and kind_of(page, each) == "radio" and owner(page, each) == form]


def options(page: FlatPage, number: int) -> list[int]:
    """Return the options of a select, in order."""
    return [each for each in page.below(number) if page.tags[each] == "option"]


def option_label(page: FlatPage, number: int) -> str:
    """Return the text of an option, as its list shows it."""
    return page.attributes[number].get("label") or " ".join(page.text(number).split())


def option_value(page: FlatPage, number: int) -> str:
    """Return what an option sends."""
    own = page.attributes[number].get("value")
    return " ".join(page.text(number).split()) if own is None else own


def is_multiple(page: FlatPage, number: int) -> bool:
    """Whether a select takes several options."""
    return "multiple" in page.attributes[number]


def selection(page: FlatPage, edits: Edits, number: int) -> tuple[int, ...]:
    """Return the options of a select that are selected."""
    edit = edits.get(number)
    if isinstance(edit, tuple):
        return tuple(each for each in edit if isinstance(each, int))
    every = options(page, number)
    chosen = tuple(each for each in every if "selected" in page.attributes[each])
    if is_multiple(page, number):
        return chosen
    size = page.attributes[number].get("size", "").strip()
    if not chosen and not (size.isdigit() and int(size) > 1):
        return tuple(each for each in every if not is_disabled(page, each))[:1]
    return chosen[-1:]


def shown_value(page: FlatPage, edits: Edits, number: int) -> str:
    """Return what stands in a control, for the name of something around it."""
    if page.tags[number] == "select":
        return " ".join(option_label(page, each) for each in selection(page, edits, number))
    return value(page, edits, number) if page.tags[number] in ("input", "textarea") else page.text(number)


def owner(page: FlatPage, number: int) -> int | None:
    """Return the form that a control belongs to."""
    name = page.attributes[number].get("form")
    if name is not None:
        form = page.by_id.get(name)
        return form if form is not None and page.tags[form] == "form" else None
    return page.closest(number, "form")


def controls(page: FlatPage, form: int) -> Iterator[int]:
    """Yield the controls of a form, in the page's order."""
    return (each for each in page.controls if owner(page, each) == form)


def submit_buttons(page: FlatPage, form: int) -> list[int]:
    """Return the buttons that send a form."""
    return [each for each in controls(page, form) if page.tags[each] in ("button", "input")
            and kind_of(page, each) in ("submit", "image")]


def blocking_fields(page: FlatPage, form: int) -> int:
    """Return how many fields keep Enter from sending a form that has no button, unless there is one alone."""
    return sum(sends_by_enter(page, each) for each in controls(page, form))


def sends_by_enter(page: FlatPage, number: int) -> bool:
    """Whether Enter in a field sends a form that has no button; in Chromium those for dates and times do not."""
    return page.tags[number] == "input" and kind_of(page, number) in _LENGTHS | {"number"}


def entries(page: FlatPage, edits: Edits, form: int, submitter: int | None) -> list[tuple[str, str]]:
    """Return the names and values that a form sends, in its order; of a file its name. Lines end with CR LF."""
    pairs: list[tuple[str, str]] = []
    for number in controls(page, form):
        if is_disabled(page, number) or page.closest(number, "datalist") is not None:
            continue
        kind, name = kind_of(page, number), page.attributes[number].get("name", "")
        if kind in _BUTTONS and number != submitter:
            continue
        if kind == "image":
            dotted = f"{name}." if name else ""
            pairs += [(f"{dotted}x", "0"), (f"{dotted}y", "0")]
        elif name:
            pairs += [(name, each) for each in _sent(page, edits, number, kind, name)]
    return [(_lines(name), _lines(text)) for name, text in pairs]


def _sent(page: FlatPage, edits: Edits, number: int, kind: str, name: str) -> list[str]:
    attributes = page.attributes[number]
    if kind == "select":
        return [option_value(page, each) for each in selection(page, edits, number) if not is_disabled(page, each)]
    if kind in ("checkbox", "radio"):
        return [attributes.get("value", "on")] if is_checked(page, edits, number) else []
    if kind == "file":
        return list(file_names(edits, number)) or [""]
    if page.tags[number] == "button":
        return [attributes.get("value", "")]
    if kind == "hidden" and name == "_charset_":
        return ["UTF-8"]
    return [value(page, edits, number)]


def file_names(edits: Edits, number: int) -> tuple[str, ...]:
    """Return the names of the files that were chosen for an input."""
    edit = edits.get(number)
    return tuple(each for each in edit if isinstance(each, str)) if isinstance(edit, tuple) else ()


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


def _is_spelled(kind: str, text: str) -> bool:
    """Whether a text is a value of a type of field, days of a calendar among them."""
    if not _SPELLED[kind][0](text):
        return False
    try:
        if kind in ("date", "datetime-local"):
            date.fromisoformat(text.partition("T")[0])
        elif kind == "month":
            date.fromisoformat(f"{text}-01")
        elif kind == "week":
            year, _, week = text.partition("-W")
            date.fromisocalendar(int(year), int(week), 1)
        if kind in ("time", "datetime-local"):
            time.fromisoformat(text.rpartition("T")[2])
    except ValueError:
        return False
    return True


def fit_text(page: FlatPage, number: int, text: str) -> str:
    """Return a typed text as the control takes it. Errors: ValueError, with a sentence, for what it cannot take."""
    kind, attributes = kind_of(page, number), page.attributes[number]
    if kind in _SPELLED and text and not _is_spelled(kind, text):
        raise ValueError(f"invalid value {text!r} (expected {_SPELLED[kind][1]})")
    newline = "\n" if kind == "textarea" else ""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)
    longest = attributes.get("maxlength", "").strip()
    if longest.isdigit() and (kind in _LENGTHS or kind == "textarea"):
        return text.encode("utf-16-le", "surrogatepass")[:2 * int(longest)].decode("utf-16-le", "ignore")
    return text


def first_refusal(page: FlatPage, edits: Edits, form: int) -> tuple[int, str] | None:
    """Return the first control that keeps a browser from sending a form, and the browser's sentence."""
    for number in controls(page, form):
        message = refusal_of(page, edits, number)
        if message:
            return number, message
    return None


def refusal_of(page: FlatPage, edits: Edits, number: int) -> str | None:
    """Return why a browser would not send what stands in a control."""
    kind, attributes = kind_of(page, number), page.attributes[number]
    if kind in ("hidden", *_BUTTONS) or is_disabled(page, number) or page.closest(number, "datalist") is not None:
        return None
    if "readonly" in attributes and (kind in TEXTS or kind == "textarea"):
        return None
    if kind == "select":
        return _select_refusal(page, edits, number)
    if kind == "checkbox":
        missing = "required" in attributes and not is_checked(page, edits, number)
        return "Please check this box if you want to proceed." if missing else None
    if kind == "radio":
        group = radio_group(page, number)
        missing = any("required" in page.attributes[each] for each in group) and not any(
            is_checked(page, edits, each) for each in group)
        return "Please select one of these options." if missing else None
    if kind == "file":
        return "Please select a file." if "required" in attributes and not file_names(edits, number) else None
    return _text_refusal(page, edits, number, kind)


def _select_refusal(page: FlatPage, edits: Edits, number: int) -> str | None:
    if "required" not in page.attributes[number]:
        return None
    chosen = selection(page, edits, number)
    every = options(page, number)
    is_first = bool(every) and page.parents[every[0]] == number and not is_multiple(page, number)
    real = [each for each in chosen if not (is_first and each == every[0] and not option_value(page, each))]
    return None if real else "Please select an item in the list."


def _text_refusal(page: FlatPage, edits: Edits, number: int, kind: str) -> str | None:
    attributes, text = page.attributes[number], value(page, edits, number)
    if not text:
        return "Please fill out this field." if "required" in attributes else None
    if kind == "email" and not all(_EMAIL(each.strip()) for each in (
            text.split(",") if "multiple" in attributes else [text])):
        return _email_refusal(text)
    if kind == "url" and not (urlsplit(text).scheme and (urlsplit(text).netloc or urlsplit(text).path)):
        return "Please enter a URL."
    shortest = attributes.get("minlength", "").strip()
    size = len(text.encode("utf-16-le", "surrogatepass")) // 2
    if number in edits and shortest.isdigit() and size < int(shortest) and (kind in _LENGTHS or kind == "textarea"):
        return (f"Please lengthen this text to {shortest} characters or more (you are currently using {size} "
                f"character{'s' if size != 1 else ''}).")
    if kind in _LENGTHS and attributes.get("pattern") and not _fits_pattern(attributes["pattern"], text):
        title = attributes.get("title", "")
        return f"Please match the requested format.{f' {title}' if title else ''}"
    return _range_refusal(attributes, text, kind) if kind in _RANGED else None


def _email_refusal(text: str) -> str:
    before, at, after = text.partition("@")
    if not at:
        return f"Please include an '@' in the email address. '{text}' is missing an '@'."
    if not before or not after:
        return f"Please enter a part {'followed by' if not before else 'following'} '@'. '{text}' is incomplete."
    return f"Please enter a valid email address. '{text}' is none."


def _fits_pattern(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern; one that this machine cannot read or could take forever with refuses nothing."""
    if may_be_slow(pattern):
        return True
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return True


def _range_refusal(attributes: dict[str, str], text: str, kind: str) -> str | None:
    low, high = attributes.get("min"), attributes.get("max")
    if kind not in ("number", "range"):
        if low and text < low:
            return f"Value must be {low} or later."
        return f"Value must be {high} or earlier." if high and text > high else None
    number = float(text)
    if low is not None and _NUMBER(low) and number < float(low):
        return f"Value must be greater than or equal to {low}."
    if high is not None and _NUMBER(high) and number > float(high):
        return f"Value must be less than or equal to {high}."
    step = attributes.get("step", "1").strip().lower()
    if step == "any":
        return None
    each = _number(step, 1.0) if _number(step, 1.0) > 0 else 1.0
    start = _number(low, _number(attributes.get("value"), 0.0))
    off = (number - start) / each
    if abs(off - round(off)) > 1e-7:
        below, above = start + each * (off // 1), start + each * (off // 1 + 1)
        return f"Please enter a valid value. The two nearest valid values are {below:.12g} and {above:.12g}."
    return None
