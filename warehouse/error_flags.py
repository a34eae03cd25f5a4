"""Which error flags of a log tell something: those of services that ever raise one.

Many formats write the flag only if a call failed, or report that the transport worked. Where no call of a service is flagged as
failed, a flag that says "no error" says nothing, and the answer's text decides.
Does not see: a service whose tools really never failed; its answers are read as text too.
"""

from __future__ import annotations

import polars as pl


def drop_silent_flags(turns: pl.DataFrame) -> pl.DataFrame:
    """Clear `is_error` of services, or of all turns if there is no column `service`, that flag no call as failed."""
    raised = pl.col("is_error").cast(pl.Boolean).any()
    if "service" in turns.columns:
        raised = raised.over("service")
    return turns.with_columns(pl.when(raised).then(pl.col("is_error")).alias("is_error"))
