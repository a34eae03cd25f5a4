"""Stages that are made service by service: which services' shares stand as they are, and which are made again.

A share is a function of the service's own rows of the tables that the stage reads, of the code, and of what else the stage is
told; its digest stands in `raw.parts` with the verdicts that came of it. Where the digest is today's, the rows that the stage's
tables hold of the service are what making them again would give.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import polars as pl

from pipelines.engine import code_digest, digest_of
from warehouse.records import Verdict, frame
from warehouse.store import Store


class Parts(NamedTuple):
    """The shares of a stage, by service."""

    wanted: dict[str, str]
    """Digest of what each service's share is made from today."""
    standing: dict[str, pl.DataFrame]
    """Verdicts of the shares that stand as they are."""
    gone: list[str]
    """Services whose rows must go: made again, or not there any more; sorted."""

    @property
    def stale(self) -> list[str]:
        """Services whose share must be made, sorted."""
        return [service for service in self.wanted if service not in self.standing]

    def again(self, services: Iterable[str]) -> Parts:
        """The same, with the shares of these services made again too."""
        these = {*services}
        left = {service: verdicts for service, verdicts in self.standing.items() if service not in these}
        return self._replace(standing=left, gone=sorted({*self.gone, *self.standing} - {*left}))


def parts(store: Store, stage: str, told: Mapping[str, object], rows: Iterable[str]) -> Parts:
    """The shares of the stage. `told`: each service, with JSON of what else its share is made from; `rows`: tables with a
    column `service`, or queries in parentheses."""
    versions = [store.versions(each) for each in rows]
    wanted = {service: digest_of([stage, service, code_digest(), each, [found.get(service) for found in versions]])
              for service, each in sorted(told.items())}
    known = {service: (digest, verdicts) for service, digest, verdicts in store.read(
        "select service, digest, verdicts from raw.parts where stage = $stage", stage=stage).iter_rows()}
    standing = {service: frame(Verdict, [Verdict(**row) for row in json.loads(known[service][1])])
                for service, digest in wanted.items()
                if service in known and known[service][0] == digest}
    return Parts(wanted, standing, sorted({*known, *wanted} - {*standing}))


def put(store: Store, table: str, found: Parts, made: pl.DataFrame) -> int:
    """Put what was made in the place of the rows of services that were made again or are gone; gives the rows of the table."""
    kept = list(found.standing)
    store.replace(table, made, "not list_contains($kept, service)", kept=kept)
    return store.count(table)


def note(store: Store, stage: str, found: Parts, verdicts: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Note the shares that were made, with the `verdicts` of each; gives the verdicts of all shares. What was not made service
    by service is not noted: it is made again."""
    rows = [{"stage": stage, "service": service, "digest": found.wanted[service],
             "verdicts": json.dumps(each.to_dicts(), sort_keys=True, ensure_ascii=False)}
            for service, each in sorted(verdicts.items()) if service in found.wanted]
    schema = {name: pl.String() for name in ("stage", "service", "digest", "verdicts")}
    store.replace("raw.parts", pl.DataFrame(rows, schema=schema), "stage = $stage and list_contains($gone, service)",
                  stage=stage, gone=found.gone)
    return pl.concat([frame(Verdict, []), *found.standing.values(), *(verdicts[name] for name in sorted(verdicts))])


def audits_of(store: Store, service: str) -> dict[str, str]:
    """What today's code played against the tasks of a service when they were verified last (`verify`'s `kept`)."""
    rows = store.read("select audit_id, audited from raw.audits where service = $service and code = $code",
                      service=service, code=code_digest())
    return dict(rows.iter_rows())


def keep_audits(store: Store, found: Parts, audits: Mapping[str, Mapping[str, str]]) -> None:
    """Put the audits of services in the place of their former ones; those of shares that stand stay."""
    rows = [{"service": service, "audit_id": key, "code": code_digest(), "audited": audited}
            for service, each in sorted(audits.items()) for key, audited in sorted(each.items())]
    put(store, "raw.audits", found, pl.DataFrame(rows, schema={
        name: pl.String() for name in ("service", "audit_id", "code", "audited")}))
