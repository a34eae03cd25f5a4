"""The one door for what agents, models, users and bound tools send: it is made storable, or refused.

In: texts and JSON values from outside. Out: values that can be written as UTF-8 and JSON, of bounded length. A surrogate
without its other half (half an emoji, where an answer was cut) becomes U+FFFD, as a decoder of UTF-8 or Web IDL's USVString
has it. What is longer than `MAX_TEXT` is refused. Every protocol ends here, so each keeps the same: a journal holds what the
environment was given, and can always be stored.
"""

from __future__ import annotations

from typing import Any

MAX_TEXT = 1024 * 1024
"""Characters of the longest message, and of the longest arguments of a call as JSON."""
MAX_EPISODE = 16 * MAX_TEXT
"""Characters of an episode, all messages, arguments and answers together; it ends as truncated beyond."""
FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What a single request may fail with; it ends no process and no other episode."""


def well_formed(value: Any) -> Any:
    """Return a JSON value whose texts can be written as UTF-8; the same object where they can already. RecursionError: it is
    nested too deep."""
    if isinstance(value, str):
        return _well_formed_text(value)
    if isinstance(value, dict):
        pairs = [(well_formed(name), well_formed(each)) for name, each in value.items()]
        same = all(name is own and each is value[own] for (name, each), own in zip(pairs, value, strict=True))
        return value if same else dict(pairs)
    if isinstance(value, list | tuple):
        items = [well_formed(each) for each in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    return value


def is_well_formed(text: str) -> bool:
    """Return whether the text can be written as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def admitted(text: str) -> str:
    """Return a message as it is taken in; ValueError if it is too long."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"the message is longer than {MAX_TEXT} characters; hint: send it in parts")
    return _well_formed_text(text)


def _well_formed_text(text: str) -> str:
    if is_well_formed(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
