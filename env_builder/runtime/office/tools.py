"""What a product's module says of its tools.

A module of this package answers the tools of one public server that agents use: `SERVER` names the server, whose descriptors
lie in `env_builder/company/descriptors/<SERVER>.jsonl`, and `TOOLS` has an answer for each tool. An answer is a function of a
desk and the arguments; it returns the text as the server writes it, raises `ProductRefusal` with the server's own words of a
refusal, and `Undecided` where the exports cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..company import CompanyDesk


class OfficeTool(NamedTuple):
    """A tool of a product."""

    answer: Callable[[CompanyDesk, dict[str, Any]], str]
    writes: tuple[str, ...] = ()
    """Classes of the records that it may write; none: it only reads."""
