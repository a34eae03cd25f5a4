"""What stages need not compute again: memoized results of functions, and services whose partition of a stage is up to date.

In: the warehouse, the name of a stage, and of a service where the stage is made service by service. Out: a `Memoize` that
wings take. When the stage is done, `raw.cache` has what was used and nothing else; results of other code count for nothing.

A partition is a function of the service's own rows of the tables that the stage reads, of the code and of other inputs; its
digest is stored in `raw.partitions` with its decisions. Where the digest is today's, the rows that the stage's tables hold of
the service are what making them again would give.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson
import polars as pl

from pipelines.running.stage import digest_of
from warehouse.records import Decision, Memoize, always, frame
from warehouse.store import Store

_SCHEMA = {"stage": pl.String(), "cache_id": pl.String(), "code": pl.String(), "value": pl.Binary()}
_LITTLE = 1
"""Effort of deflating: cached texts repeat themselves, and are read every night."""


@contextlib.contextmanager
def memoized(store: Store, stage: str, code: str) -> Iterator[Memoize]:
    """Yield the cache of a stage's functions; at the end what they gave now replaces what they gave before."""
    rows = store.read("select cache_id, value from raw.cache where stage = $stage and code = $code", stage=stage, code=code)
    before, now = dict(rows.iter_rows()), dict[str, bytes]()

    def memoize(arguments: object, make: Callable[[], Any], holds: Callable[[Any], bool] = always) -> Any:
        key = hashlib.sha256(orjson.dumps(arguments)).hexdigest()[:32]
        packed = now.get(key) or before.get(key)
        value = None if packed is None else orjson.loads(zlib.decompress(packed))
        if packed is None or not holds(value):
            packed = zlib.compress(orjson.dumps(make()), _LITTLE)
            value = orjson.loads(zlib.decompress(packed))
        now[key] = packed
        return value

    yield memoize
    new = [{"stage": stage, "cache_id": key, "code": code, "value": packed} for key, packed in now.items()
           if packed is not before.get(key)]
    store.change(
        "delete from raw.cache where stage = $stage and (code != $code or cache_id not in (select cache_id from incoming))",
        pl.DataFrame({"cache_id": [key for key in now if now[key] is before.get(key)]}, schema={"cache_id": pl.String()}),
        stage=stage, code=code)
    store.append("raw.cache", pl.DataFrame(new, schema=_SCHEMA))


class Partitions(NamedTuple):
    """A stage's partitions, by service."""

    wanted: dict[str, str]
    """Digest of what each service's partition is made from today."""
    standing: dict[str, pl.DataFrame]
    """Decisions of the partitions that are up to date."""
    gone: list[str]
    """Services whose rows must go: stale, or not there any more; sorted."""

    @property
    def stale(self) -> list[str]:
        """Services whose partition must be made, sorted."""
        return [service for service in self.wanted if service not in self.standing]

    def with_stale(self, services: Iterable[str]) -> Partitions:
        """Count these services as stale too."""
        these = {*services}
        current = {service: decisions for service, decisions in self.standing.items() if service not in these}
        return self._replace(standing=current, gone=sorted({*self.gone, *self.standing} - {*current}))


def partitions_of(store: Store, stage: str, code: str, inputs: Mapping[str, object], rows: Iterable[str]) -> Partitions:
    """Compare each service's partition of a stage with what it would be made from today. `inputs`: service -> JSON of what else
    it is made from; `rows`: tables with a column `service`, or queries in parentheses."""
    versions = [store.versions(each) for each in rows]
    wanted = {service: digest_of([stage, service, code, each, [digests.get(service) for digests in versions]])
              for service, each in sorted(inputs.items())}
    recorded = {service: (digest, decisions) for service, digest, decisions in store.read(
        "select service, digest, decisions from raw.partitions where stage = $stage", stage=stage).iter_rows()}
    standing = {service: frame(Decision, [Decision(**row) for row in json.loads(recorded[service][1])])
                for service, digest in wanted.items() if service in recorded and recorded[service][0] == digest}
    return Partitions(wanted, standing, sorted({*recorded, *wanted} - {*standing}))


def replace_stale(store: Store, table: str, partitions: Partitions, made: pl.DataFrame) -> int:
    """Replace the rows of stale and removed services; gives the rows of the table."""
    store.replace(table, made, "not list_contains($kept, service)", kept=list(partitions.standing))
    return store.count(table)


def record_partitions(store: Store, stage: str, partitions: Partitions, decisions: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Record the partitions that were made, with the `decisions` of each; gives the decisions of all. What was not made by
    service is not recorded: it is made again."""
    rows = [{"stage": stage, "service": service, "digest": partitions.wanted[service],
             "decisions": json.dumps(each.to_dicts(), sort_keys=True, ensure_ascii=False)}
            for service, each in sorted(decisions.items()) if service in partitions.wanted]
    schema = {name: pl.String() for name in ("stage", "service", "digest", "decisions")}
    store.replace("raw.partitions", pl.DataFrame(rows, schema=schema), "stage = $stage and list_contains($gone, service)",
                  stage=stage, gone=partitions.gone)
    return pl.concat([frame(Decision, []), *partitions.standing.values(), *(decisions[name] for name in sorted(decisions))])
