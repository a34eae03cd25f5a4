"""Asset checks: the rules of pipelines/rules.py on the tables that they speak of, with the rows that break them.

A rule that does not hold blocks what is made from its table, the release last of all; a warning blocks nothing.
"""

from collections.abc import Iterator

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    MetadataValue,
    multi_asset_check,
)

from pipelines.assets import POOL, key_of
from pipelines.engine import Stage
from pipelines.pictures import markdown, rows_are_shown
from pipelines.resources import SettingsResource
from pipelines.rules import RULES, WARNINGS, Rule, offenders
from pipelines.stages import STAGES
from warehouse.lock import writing
from warehouse.store import Store

_SHOWN = 20


def _checks_of(stage: Stage) -> AssetChecksDefinition:
    """The rules on a stage's tables, as one operation."""
    rules = {rule.name: rule for rule in (*RULES, *WARNINGS) if rule.table in stage.tables}
    specs = [
        AssetCheckSpec(rule.name, asset=key_of(rule.table), description=rule.says, blocking=rule not in WARNINGS)
        for rule in rules.values()]

    @multi_asset_check(name=f"{stage.name}_checks", specs=specs, can_subset=True, pool=POOL)
    def operation(context: AssetCheckExecutionContext, settings: SettingsResource) -> Iterator[AssetCheckResult]:
        warehouse = settings.settings().warehouse
        with writing(warehouse, f"the checks of {stage.name}"), Store.open(warehouse) as store:
            for key in sorted(context.selected_asset_check_keys):
                found = offenders(store, rules[key.name])
                yield AssetCheckResult(
                    passed=found.is_empty(), severity=_severity(rules[key.name]), asset_key=key.asset_key, check_name=key.name,
                    metadata={"offenders": MetadataValue.int(found.height),
                              "rows": MetadataValue.md(markdown(found.head(_SHOWN)) if rows_are_shown() else "kept out")})

    return operation


def _severity(rule: Rule) -> AssetCheckSeverity:
    return AssetCheckSeverity.WARN if rule in WARNINGS else AssetCheckSeverity.ERROR


checks = [_checks_of(stage) for stage in STAGES if any(rule.table in stage.tables for rule in (*RULES, *WARNINGS))]
