"""The assets: one per table, made from the list of stages (pipelines/stages.py).

A stage that fills several tables by one call is one operation with several assets. Every operation takes the pool of the
warehouse's writer and the lock beside it, so that neither two steps nor two programs write at once.

**Partitions.** Ingestion of day D takes every file that is not in the ledger and whose day is D or earlier, or that has no
time: a late file for an old day is taken by the next run. The stages above compute from the whole warehouse, so any
partition of them gives the same tables, and a backfill of many days is one run.

**Checks** are the rules of pipelines/quality/rules.py on their tables, with the rows that break them. A broken rule blocks what
is made from its table, the release last of all; a warning blocks nothing.

**The release** is an asset too, made after every table. Each gate over the whole build is one of its checks, with its rows.
Where one is red, the step fails, nothing is put, and the promoted release stays.

A run outside of Dagster records its stages on the instance of DAGSTER_HOME.
"""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import yaml  # type: ignore[import-untyped]  # Dagster brings it, without stubs

from pipelines.dagster_assets.pictures import markdown, metadata_of, metadata_of_check, shown_bars
from pipelines.dagster_assets.settings_resource import SettingsResource
from pipelines.inspection.views import StoreSource, stages, totals
from pipelines.quality.gates import GATES
from pipelines.quality.rules import RULES, WARNINGS, offenders
from pipelines.releases.registry import collect
from pipelines.releases.releasing import refusal, registry_of
from pipelines.releases.releasing import release as make
from pipelines.reporting import report as write_report
from pipelines.running.faults import passes, retried
from pipelines.running.stage import Report, Stage, carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.errors import InputError, TraceroomError
from warehouse.lock import writing
from warehouse.schema import comments, layout
from warehouse.store import Store

POOL = "warehouse_writer"
LIVE_SOURCES = dg.AssetKey(["live_sources"])
"""What is pulled before the first stage (pipelines/dagster_assets/live_sources.py)."""


def daily() -> dg.DailyPartitionsDefinition:
    """Days of logs, from TRACEROOM_FIRST_DAY; today is one of them. Raises InputError."""
    first_day = os.environ.get("TRACEROOM_FIRST_DAY") or "2015-01-01"
    try:
        return dg.DailyPartitionsDefinition(start_date=first_day, timezone="UTC", end_offset=1)
    except ValueError:
        raise InputError(f"{first_day!r} is no day", "TRACEROOM_FIRST_DAY", "write it as 2015-01-01") from None


days = daily()


def owners() -> list[str]:
    """Whose the assets are: e-mail addresses and `team:NAME`, as TRACEROOM_OWNERS names them. Raises InputError."""
    names = [each.strip() for each in os.environ.get("TRACEROOM_OWNERS", "").split(",") if each.strip()]
    for each in names:
        try:
            dg.AssetSpec("owned", owners=[each])
        except dg.DagsterInvalidDefinitionError:
            raise InputError(f"{each!r} is neither an e-mail address nor a team", "TRACEROOM_OWNERS",
                             "give such as team:desk,ada@example.org") from None
    return names


def run_tags() -> dict[str, str]:
    """Tags of every run: TRACEROOM_RUN_TAGS, as `key=value` with commas between, and whose it is."""
    pairs = [each.partition("=") for each in os.environ.get("TRACEROOM_RUN_TAGS", "").split(",") if each.strip()]
    whose = {"traceroom/owners": ",".join(owners())} if owners() else {}
    return {**whose, **{key.strip(): value.strip() for key, _, value in pairs}}


def made_by() -> dg.FreshnessPolicy:
    """Policy that a table is made in the day before this hour (TRACEROOM_FRESH_BY, cron in UTC). Raises InputError."""
    return _made_by(os.environ.get("TRACEROOM_FRESH_BY") or "0 6 * * *")


@cache
def _made_by(cron: str) -> dg.FreshnessPolicy:
    """Make the policy once for all tables: Dagster goes through a thousand days to see how far apart the hours are."""
    try:
        dg.ScheduleDefinition(name="probe", cron_schedule=cron, job_name="everything")
        if not re.fullmatch(r"\d+ \d+ .*", cron):
            raise dg.DagsterInvalidDefinitionError(cron)
        return dg.FreshnessPolicy.cron(cron, timedelta(hours=24))
    except dg.DagsterInvalidDefinitionError:
        raise InputError(f"{cron!r} is no cron expression of an hour of the day", "TRACEROOM_FRESH_BY",
                         "give such as 0 6 * * *, for six o'clock in UTC") from None


def key_of(table: str) -> dg.AssetKey:
    """Asset of a table: `core.sessions` is `core/sessions`."""
    return dg.AssetKey(table.split("."))


def _described(table: str, stage: Stage) -> str:
    """Say what a row of the table is, and what its stage does."""
    return f"{comments()[table]}.\n\nStage `{stage.name}`: {stage.description}"


def _columns_of(table: str) -> dg.TableSchema:
    """Return the table's columns with what they hold."""
    return dg.TableSchema([
        dg.TableColumn(column.name, column.kind, comments()[f"{table}.{column.name}"],
                       dg.TableColumnConstraints(nullable=column.is_nullable)) for column in layout().columns[table]])


def _asset_of(stage: Stage) -> dg.AssetsDefinition:
    inputs = [key_of(table) for other in STAGES if other.name in stage.after for table in other.table_names]
    inputs += [] if stage.after else [LIVE_SOURCES]
    specs = [
        dg.AssetSpec(
            key_of(table), deps=inputs, group_name=stage.name, description=_described(table, stage), kinds={"duckdb"},
            metadata={"dagster/column_schema": _columns_of(table)}, owners=owners(),
            tags={"layer": table.split(".")[0], "stage": stage.name}, freshness_policy=made_by())
        for table in stage.table_names]

    @dg.multi_asset(
        name=stage.name, specs=specs, partitions_def=days, backfill_policy=dg.BackfillPolicy.single_run(), pool=POOL)
    def operation(context: dg.AssetExecutionContext, settings: SettingsResource) -> Iterator[dg.MaterializeResult[None]]:
        run_settings = settings.settings()
        if run_settings.until is None and not settings.document:
            run_settings = run_settings.model_copy(update={"until": context.partition_key_range.end})
        report = _carried_out(context, stage, run_settings)
        for table, sample in report.tables.items():
            yield dg.MaterializeResult(
                asset_key=key_of(table), metadata=metadata_of(report, table), data_version=dg.DataVersion(sample.version))

    return operation


def _carried_out(context: dg.AssetExecutionContext, stage: Stage, settings: Settings) -> Report:
    """Carry out a stage, retried as `traceroom run` retries it. Any other fault fails at once, with its sentence."""
    try:
        return retried(
            lambda: carry_out(stage, settings, lambda who: context.log.info(f"waiting for {who}")), context.log.warning,
            f"{settings.out} (stage {stage.name})")
    except TraceroomError as error:
        fault = "may pass by itself, and did not" if passes(error) else "does not pass by itself"
        raise dg.Failure(str(error), {"fault": dg.MetadataValue.text(fault)}, allow_retries=False) from error


assets = [_asset_of(stage) for stage in STAGES]


def _checks_of(stage: Stage) -> dg.AssetChecksDefinition:
    """Define the rules on a stage's tables as one operation."""
    rules = {rule.name: rule for rule in (*RULES, *WARNINGS) if rule.table in stage.table_names}
    specs = [
        dg.AssetCheckSpec(rule.name, asset=key_of(rule.table), description=rule.description, blocking=rule not in WARNINGS)
        for rule in rules.values()]

    @dg.multi_asset_check(name=f"{stage.name}_checks", specs=specs, can_subset=True, pool=POOL)
    def operation(context: dg.AssetCheckExecutionContext, settings: SettingsResource) -> Iterator[dg.AssetCheckResult]:
        warehouse = settings.settings().warehouse
        with writing(warehouse, f"the checks of {stage.name}"), Store.open(warehouse) as store:
            for key in sorted(context.selected_asset_check_keys):
                rule = rules[key.name]
                rows = offenders(store, rule)
                yield dg.AssetCheckResult(
                    passed=rows.is_empty(), asset_key=key.asset_key, check_name=key.name, metadata=metadata_of_check(rows),
                    severity=dg.AssetCheckSeverity.WARN if rule in WARNINGS else dg.AssetCheckSeverity.ERROR)

    return operation


checks = [_checks_of(stage) for stage in STAGES if any(rule.table in stage.table_names for rule in (*RULES, *WARNINGS))]


def record(report: Report) -> None:
    """Report the stage's tables, and the rules that hold on them, as events of no Dagster run."""
    with instance() as dagster_instance:
        for table, sample in report.tables.items():
            dagster_instance.report_runless_asset_event(dg.AssetMaterialization(
                key_of(table), metadata=metadata_of(report, table), partition=days.get_last_partition_key(),
                tags={"dagster/data_version": sample.version}))
        for rule in RULES:
            if rule.table in report.tables:
                dagster_instance.report_runless_asset_event(dg.AssetCheckEvaluation(
                    asset_key=key_of(rule.table), check_name=rule.name, passed=True, metadata={"offenders": 0},
                    severity=dg.AssetCheckSeverity.ERROR))


@contextlib.contextmanager
def instance() -> Iterator[dg.DagsterInstance]:
    """Open the instance of DAGSTER_HOME. A relative `base_dir` lies below it: Dagster itself would take it from the folder that
    this process was started in. Raises InputError where DAGSTER_HOME is not the absolute path of a folder."""
    home = Path(os.environ.get("DAGSTER_HOME", ""))
    if not home.is_absolute() or not home.is_dir():
        raise InputError("it must be the absolute path of a folder", f"DAGSTER_HOME={home}", "export DAGSTER_HOME=$PWD")
    file = home / "dagster.yaml"
    config = yaml.safe_load(file.read_text("utf-8")) if file.is_file() else {}
    if not isinstance(config or {}, dict):
        raise InputError("this is no mapping", str(file), "copy dagster.yaml of Traceroom there")
    if not _make_absolute(config or {}, home):
        opened = dg.DagsterInstance.from_config(str(home))
    else:
        with tempfile.NamedTemporaryFile("w", dir=home, suffix=".yaml", encoding="utf-8") as absolute:
            yaml.safe_dump(config, absolute)
            absolute.flush()
            opened = dg.DagsterInstance.from_config(str(home), Path(absolute.name).name)
    with opened:
        yield opened


def _make_absolute(section: dict[str, Any], home: Path) -> bool:
    """Put `home` before each relative base_dir; returns whether there was one."""
    changed = False
    for name, value in section.items():
        if name == "base_dir" and isinstance(value, str) and not Path(value).is_absolute():
            section[name] = str(home / value)
            changed = True
        elif isinstance(value, dict):
            changed |= _make_absolute(value, home)
    return changed


@dg.asset(
    name="report", group_name="report", deps=[key_of("mart.decisions")], partitions_def=days, pool=POOL, kinds={"html"},
    backfill_policy=dg.BackfillPolicy.single_run(), owners=owners(), freshness_policy=made_by())
def report(context: dg.AssetExecutionContext, settings: SettingsResource) -> dg.MaterializeResult[None]:
    """One page on what was made of the logs: OUT/report/index.html."""
    current = settings.settings()
    with Store.published(current.warehouse) as store:
        source = StoreSource(store)
        page, listed, counts = write_report(store, current.report), stages(source), totals(source)
    rows = pl.DataFrame([{"stage": row["stage"], "kept": row["kept"], "rejected": row["n_rejected"]} for row in listed],
                        schema={"stage": pl.String, "kept": pl.Int64, "rejected": pl.Int64})
    return dg.MaterializeResult(metadata={
        "page": dg.MetadataValue.path(str(page.absolute())), "bytes": dg.MetadataValue.int(page.stat().st_size),
        "picture": shown_bars("what each stage kept", [(row["stage"], row["kept"], True) for row in listed]),
        "funnel": dg.MetadataValue.md(markdown(rows)),
        **{name: dg.MetadataValue.int(n) for name, n in counts.items() if isinstance(n, int)}})


RELEASE = dg.AssetKey(["release"])
_JUDGING = [gate for gate in GATES if gate.name not in {rule.name for rule in RULES}]


@dg.multi_asset(
    name="release", partitions_def=days, backfill_policy=dg.BackfillPolicy.single_run(), pool=POOL,
    specs=[dg.AssetSpec(
        RELEASE, deps=[key_of(table) for stage in STAGES for table in stage.table_names], group_name="release", owners=owners(),
        freshness_policy=made_by(),
        description="What the build publishes, judged, immutable and promoted (docs/releases.md).")],
    check_specs=[dg.AssetCheckSpec(gate.name, asset=RELEASE, description=gate.description) for gate in _JUDGING])
def release(
    context: dg.AssetExecutionContext, settings: SettingsResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Put what the run built into the registry, and promote it where no approval is configured."""
    run_settings = settings.settings()
    try:
        registry = registry_of(run_settings)
        made = retried(lambda: make(
            run_settings, registry, f"run {context.run.run_id}", waiting=lambda who: context.log.info(f"waiting for {who}")),
            context.log.warning)
    except (TraceroomError, OSError) as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    names = {gate.name for gate in _JUDGING}
    yield from (
        dg.AssetCheckResult(
            check_name=each.gate, asset_key=RELEASE, passed=each.rows.is_empty(),
            severity=dg.AssetCheckSeverity.ERROR if each.red else dg.AssetCheckSeverity.WARN,
            metadata={**metadata_of_check(each.rows), "level": dg.MetadataValue.text(each.level)})
        for each in made.judged if each.gate in names)
    if made.release is None:
        raise dg.Failure(str(refusal(made.judged, made.before)), allow_retries=False)
    policy, n_collected = run_settings.configured.release, 0
    try:
        n_collected = len(collect(registry, policy.keep, policy.days).releases)
    except (TraceroomError, OSError) as error:
        context.log.warning(f"old releases stay tonight: {error}")
    manifest = registry.manifest(made.release)
    parts = [(f"{part['kind']} {part['name']}", part["n_files"], True) for part in manifest["parts"]]
    gates = pl.DataFrame([{"gate": each.gate, "level": each.level, "found": each.rows.height, "accepted": each.accepted}
                          for each in made.judged])
    yield dg.MaterializeResult(asset_key=RELEASE, metadata={
        "release": dg.MetadataValue.text(made.release), "state": dg.MetadataValue.text(made.state),
        "before": dg.MetadataValue.text(made.before or "none"), "registry": dg.MetadataValue.text(registry.where),
        "picture": shown_bars(f"files of the release {made.release}", parts), "gates": dg.MetadataValue.md(markdown(gates)),
        **{name: dg.MetadataValue.float(float(value)) for name, value in manifest["figures"].items()},
        "n_collected": dg.MetadataValue.int(n_collected)})
