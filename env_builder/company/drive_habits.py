"""What recorded calls teach of a company's Google Workspace server.

In: recorded calls. Out: whether the server is `bare`: its answers leave out the links that the public server writes, in every
tool whose answers are recorded. Such a server answers with what the vendor's API gives; where no call shows an answer of a
tool, it is taken to do so there too (no lists of labels after a change, no short rows filled up).
Sees: tools whose public answers always have a link. Does not see: anything of a company without such calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from env_builder.company.gmail_habits import MailCall, is_bare
from env_builder.runtime.company import CompanyWorld


def learn_drive(calls: Sequence[MailCall], world: CompanyWorld) -> dict[str, Any]:
    """Return what calls teach of the product `drive`."""
    return {"bare": True} if is_bare(calls) else {}
