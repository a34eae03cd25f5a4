"""Keys of a keyboard, as they change the text of a field whose cursor stands at its end."""

from __future__ import annotations

_CHARACTERS = {"Space": " ", "Enter": "\n"}
_COMBINED = ("Alt+", "Control+", "ControlOrMeta+", "Meta+")


def typed_key(text: str, key: str) -> str | None:
    """Return a field's text after a key; None: the key does not change it."""
    if key.startswith(_COMBINED):
        return None
    key = key.removeprefix("Shift+") if len(key) > len("Shift+") else key
    if key == "Backspace":
        return text[:-1]
    character = _CHARACTERS.get(key, key if len(key) == 1 else None)
    return None if character is None else text + character
