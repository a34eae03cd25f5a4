"""What functions of their arguments alone gave on another day, so that a night computes what is new.

In: the warehouse, the name of a stage, and of a service where the stage is made service by service. Out: a `Remember` that
wings take. When the stage is done, what was asked for stands in `raw.kept` and nothing else: what no session says any more is
forgotten. What other code gave counts for nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import polars as pl

from pipelines.engine import code_digest
from warehouse.records import Remember
from warehouse.store import Store

_SCHEMA = {"stage": pl.String(), "kept_id": pl.String(), "code": pl.String(), "told": pl.Binary()}
_LITTLE = 1
"""Effort of deflating: what is kept says the same words again and again, and is read every night."""


@contextlib.contextmanager
def keeping(store: Store, stage: str) -> Iterator[Remember]:
    """What the stage's functions gave last time; at the end what they gave now is kept in its place."""
    code = code_digest()
    rows = store.read("select kept_id, told from raw.kept where stage = $stage and code = $code", stage=stage, code=code)
    before, now = dict(rows.iter_rows()), dict[str, bytes]()

    def remember(arguments: object, make: Callable[[], Any]) -> Any:
        key = hashlib.sha256(orjson.dumps(arguments)).hexdigest()[:32]
        told = now.get(key) or before.get(key) or zlib.compress(orjson.dumps(make()), _LITTLE)
        now[key] = told
        return orjson.loads(zlib.decompress(told))

    yield remember
    new = [{"stage": stage, "kept_id": key, "code": code, "told": told} for key, told in now.items() if key not in before]
    store.change(
        "delete from raw.kept where code != $code or stage = $stage and kept_id not in (select kept_id from incoming)",
        pl.DataFrame({"kept_id": list(now)}, schema={"kept_id": pl.String()}), stage=stage, code=code)
    store.append("raw.kept", pl.DataFrame(new, schema=_SCHEMA))


def forget(store: Store, stages: list[str]) -> None:
    """What was kept of these is not there any more."""
    store.change("delete from raw.kept where list_contains($stages, stage)", None, stages=stages)
