"""The release as an asset: made after every table, held up by every gate, each gate an asset check with its rows.

The rules on the tables are checks that block by themselves; the gates over the whole build stand on the release. Where one is
red the step fails, nothing is put, and what was promoted stays.
"""

from collections.abc import Iterator

import polars as pl
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetSpec,
    BackfillPolicy,
    Failure,
    MaterializeResult,
    MetadataValue,
    RetryRequested,
    multi_asset,
)

from pipelines.assets import POOL, days, key_of, made_by, owners, waits
from pipelines.faults import passes
from pipelines.gates import GATES, Judged
from pipelines.pictures import markdown, rows_are_shown, shown_bars
from pipelines.releases.collecting import collect
from pipelines.releases.registry import Registry
from pipelines.releases.releasing import Released, refusal, registry_of
from pipelines.releases.releasing import release as make
from pipelines.resources import SettingsResource
from pipelines.rules import RULES
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.errors import TraceroomError

RELEASE = AssetKey(["release"])
_SHOWN = 20
_JUDGING = [gate for gate in GATES if gate.name not in {rule.name for rule in RULES}]


@multi_asset(
    name="release", partitions_def=days, backfill_policy=BackfillPolicy.single_run(), pool=POOL,
    specs=[AssetSpec(
        RELEASE, deps=[key_of(table) for stage in STAGES for table in stage.tables], group_name="release", owners=owners(),
        freshness_policy=made_by(),
        description="What the build publishes, judged, immutable and promoted (docs/releases.md).")],
    check_specs=[AssetCheckSpec(gate.name, asset=RELEASE, description=gate.says) for gate in _JUDGING])
def release(
    context: AssetExecutionContext, settings: SettingsResource
) -> Iterator[MaterializeResult[None] | AssetCheckResult]:
    """Put what the run built into the registry, and promote it where nobody has to approve."""
    told = settings.settings()
    try:
        registry = registry_of(told)
        made = make(told, registry, f"run {context.run.run_id}", waiting=lambda who: context.log.info(f"waiting for {who}"))
    except (TraceroomError, OSError) as error:
        pauses = waits()
        if passes(error) and context.retry_number < len(pauses):
            raise RetryRequested(len(pauses), seconds_to_wait=pauses[context.retry_number]) from error
        raise Failure(str(error), allow_retries=False) from error
    names = {gate.name for gate in _JUDGING}
    yield from (_checked(each) for each in made.judged if each.gate in names)
    if made.release is None:
        raise Failure(str(refusal(made.judged, made.before)), allow_retries=False)
    gone = _collected(context, told, registry)
    yield MaterializeResult(asset_key=RELEASE, metadata=_metadata(made, registry) | {"n_collected": MetadataValue.int(gone)})


def _collected(context: AssetExecutionContext, settings: Settings, registry: Registry) -> int:
    """How many old releases went, as `[release]` says; what cannot go tonight goes another night."""
    policy = settings.configured.release
    try:
        return len(collect(registry, policy.keep, policy.days).releases)
    except (TraceroomError, OSError) as error:
        context.log.warning(f"old releases stay tonight: {error}")
        return 0


def _checked(judged: Judged) -> AssetCheckResult:
    return AssetCheckResult(
        check_name=judged.gate, asset_key=RELEASE, passed=judged.rows.is_empty(),
        severity=AssetCheckSeverity.ERROR if judged.red else AssetCheckSeverity.WARN,
        metadata={"offenders": MetadataValue.int(judged.rows.height), "level": MetadataValue.text(judged.level),
                  "rows": MetadataValue.md(markdown(judged.rows.head(_SHOWN)) if rows_are_shown() else "kept out")})


def _metadata(made: Released, registry: Registry) -> dict[str, MetadataValue]:
    """The release as its asset shows it: what of its parts there is, what each gate found, and its figures."""
    manifest = registry.manifest(str(made.release))
    parts = [(f"{part['kind']} {part['name']}", part["n_files"], True) for part in manifest["parts"]]
    gates = pl.DataFrame([{"gate": each.gate, "level": each.level, "found": each.rows.height, "accepted": each.accepted}
                          for each in made.judged])
    return {
        "release": MetadataValue.text(str(made.release)), "state": MetadataValue.text(made.state),
        "before": MetadataValue.text(made.before or "none"), "registry": MetadataValue.text(registry.where),
        "picture": shown_bars(f"files of the release {made.release}", parts), "gates": MetadataValue.md(markdown(gates)),
        **{name: MetadataValue.float(float(value)) for name, value in manifest["figures"].items()}}
