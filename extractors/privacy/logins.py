"""Arguments of a request in, the name out that somebody logged in with: what was typed before the one password of a form.

Does not see: logins in two steps, where the password is asked for on a page of its own, forms that ask for a password twice,
and passwords whose field is called otherwise: `{"model": …, "api_key": …}` is no login.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from extractors.formats.values import dumped, object_of, parsed_json
from extractors.privacy.credentials import SECRET

_IS_PASSWORD = re.compile(r"pass|pwd|^pw|_pw$|kennwort|contrase|mot_?de|senha|wachtwoord", re.IGNORECASE).search


class TypedLogin(NamedTuple):
    """A name that was typed into a form with a password."""

    field: str
    name: str


def login_in(arguments: str | None) -> TypedLogin | None:
    """Return the login of a request; None where it is none."""
    if arguments is None or SECRET not in arguments:
        return None
    body = object_of(object_of(parsed_json(arguments)).get("body"))
    passwords = [name for name, value in body.items() if value == SECRET and _IS_PASSWORD(name)]
    if len(passwords) != 1:
        return None
    before = list(body)[:list(body).index(passwords[0])]
    typed = [TypedLogin(name, body[name]) for name in before if isinstance(body[name], str) and body[name] not in ("", SECRET)]
    return typed[-1] if typed else None


def with_login(arguments: str, login: TypedLogin, name: str) -> str:
    """Return the arguments with another name."""
    document = object_of(parsed_json(arguments))
    return dumped({**document, "body": {**object_of(document.get("body")), login.field: name}})
