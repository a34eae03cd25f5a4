"""The policy: which fields hold what, and what is kept, as a person says it in a TOML file.

    [fields]
    booking_contact = "name"     # name email phone address zip card ending account id ip date secret, or keep
    [keep]
    values = ["Jordan"]          # words and values that are no one's

In: the file. Out: a `Policy`. It adds to what is found by names and looks (`fields`), and wins over it."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from warehouse.errors import InputError

VERSION = "1"
"""Of the rules by which personal data is taken out."""
Kind = Literal["name", "email", "phone", "address", "zip", "card", "ending", "account", "id", "ip", "date", "secret", "keep"]


class Keep(BaseModel):
    """What stays."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    values: frozenset[str] = frozenset()
    """Words and values that are no one's."""


class Policy(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    fields: dict[str, Kind] = Field(default_factory=dict)
    """Field -> what its values are."""
    keep: Keep = Keep()

    @property
    def policy_id(self) -> str:
        """Version of the rules, and of the policy: `1`, `1+0a1b2c3d`."""
        settings = [sorted(self.fields.items()), sorted(self.keep.values)]
        return VERSION + ("" if settings == [[], []] else f"+{hashlib.sha256(repr(settings).encode()).hexdigest()[:8]}")


def load(path: Path | str) -> Policy:
    """Read the policy in a TOML file. Raises InputError, one sentence with the file and the hint."""
    try:
        return Policy.model_validate(tomllib.loads(Path(path).read_text("utf-8")))
    except OSError as error:
        raise InputError(f"the privacy policy cannot be read ({error.strerror})", str(path),
                         "correct privacy_policy") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the privacy policy is no TOML ({error})", str(path), "repair that place") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"key '{where}': {first['msg']}", str(path), "correct it (docs/privacy.md)") from error
