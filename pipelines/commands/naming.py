"""The command that names: `pseudonym`, for who has the key."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from pipelines.commands.building import Json
from pipelines.screen import data, say
from warehouse.errors import Missing


def pseudonym(
    value: Annotated[str, typer.Argument(help="A name, an address, a number or an id, as it stands in the logs.")],
    kind: Annotated[str | None, typer.Option(
        help="What it is: name, email, phone, address, zip, card, ending, account, id, ip or date; else by its look.",
        show_default=False)] = None,
    json: Json = False,
) -> None:
    """Say which pseudonym stands for a value, for who has the key."""
    from extractors.privacy import KINDS, Pseudonyms
    from extractors.privacy.dates import day_of
    from extractors.privacy.fields import guessed
    from extractors.privacy.secrets import cut_out
    from pipelines.keys import owner_key

    if kind is not None and kind not in KINDS:
        raise Missing.named("kind", kind, KINDS)
    kind = kind or ("secret" if cut_out(value) != value else "date" if day_of(value) else guessed(value))
    made = Pseudonyms(owner_key(os.environ, say)).of(kind, value)
    if json:
        data({"kind": kind, "pseudonym": made})
    else:
        typer.echo(made)
