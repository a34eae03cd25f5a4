"""When work runs: stages, assets, schedules and the command line."""

import os

os.environ.setdefault("_RJEM_MALLOC_CONF", "muzzy_decay_ms:0")  # read when polars is loaded: give memory back once it is free
