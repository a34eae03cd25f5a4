"""How much memory a stage may hold: TRACEROOM_MEMORY, for this process and its workers together.

A stage gives DuckDB a part of it (the rest goes to a folder next to the warehouse) and starts no more workers than fit. Where
its own work grows past the limit, the stage ends with an error before the machine ends it, and what was committed stays.
Sees: resident sets of processes (psutil). Does not see: what one call outside Python takes before it comes back.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import gc
import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from typing import TYPE_CHECKING

import psutil

from env_builder.runtime.canonical import IdentityCache
from warehouse.errors import InputError, TraceroomError

if TYPE_CHECKING:
    from warehouse.store import Store

VARIABLE = "TRACEROOM_MEMORY"
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_OF_DUCKDB = 0.25
"""Share of the memory that DuckDB may hold."""
_WORKER = 300_000_000
"""What a worker takes at least: the packages that it loads, and a shard."""
_WORTH_IT = 64_000_000
"""Bytes that a process grows by before it gives memory back."""
_released_at = 0
"""Bytes in memory when memory was last given back."""
_CHECK_S = 0.1
_WINGS = ("extractors", "env_builder")
_SIGNAL = getattr(signal, "SIGUSR2", signal.SIGINT)
"""Interrupts the main thread; what a shell begins in the background does not listen to SIGINT."""


def limit() -> int | None:
    """Bytes that a stage may hold; None where none is set. Raises InputError."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]I?B)", text.upper())
    if match is None or match[2] not in _UNITS:
        raise InputError(f"{text!r} is no size of memory", VARIABLE, "write it as 4GB or 800MB, or do not set it")
    return int(float(match[1]) * _UNITS[match[2]])


def of_duckdb(most: int) -> str:
    """Limit of DuckDB, as it reads it: so many MB, or its part of the setting where that is less."""
    limit_bytes = limit()
    return f"{most if limit_bytes is None else min(most, int(_OF_DUCKDB * limit_bytes) // 10**6)}MB"


def n_fitting(n: int) -> int:
    """How many of `n` workers fit: each is taken to become as large as this process is now, and this one, which
    works as well, twice that."""
    limit_bytes = limit()
    own = resident(os.getpid())
    return n if limit_bytes is None else max(0, min(n, int((limit_bytes - 2 * own) // max(own, _WORKER))))


@contextlib.contextmanager
def bounded(stage: str, store: Store) -> Iterator[None]:
    """Hold a stage to the memory that it may have. Raises InputError where it needs more. Outside the main thread nothing can
    be broken off: there DuckDB and workers alone are held to it."""
    limit_bytes = limit()
    if limit_bytes is None:
        yield
        return
    watch = _Watch(limit_bytes)
    try:
        with store.holding(of_duckdb(limit_bytes // 10**6)), watch:
            yield
    except (KeyboardInterrupt, TraceroomError):
        if not watch.exceeded:
            raise
        raise InputError(
            f"the stage {stage!r} needs more memory than {limit_bytes / 1e9:g} GB", VARIABLE,
            "allow more, or build from fewer sessions (--since, --limit, --service); what was committed stays") from None


class _Watch(threading.Thread):
    """Ends the workers and breaks the main thread off when this process and its children hold more than `most` bytes."""

    def __init__(self, most: int) -> None:
        super().__init__(daemon=True)
        self._most, self.exceeded, self._done = most, False, threading.Event()
        self._can = threading.current_thread() is threading.main_thread()

    def run(self) -> None:
        """Check until the stage is done."""
        while self._can and not self._done.wait(_CHECK_S):
            if self._is_over():
                for worker in multiprocessing.active_children():
                    worker.terminate()
                _thread.interrupt_main(_SIGNAL)
                return

    def _is_over(self) -> bool:
        self.exceeded = sum(map(resident, family(os.getpid()))) > self._most
        return self.exceeded

    def __enter__(self) -> None:
        if self._can:
            if self._is_over():
                raise KeyboardInterrupt   # nothing has begun
            self._before = signal.signal(_SIGNAL, signal.default_int_handler)
        self.start()

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self.join()
        if self._can:
            signal.signal(_SIGNAL, self._before)


def release(least: int = _WORTH_IT) -> None:
    """Clear the caches of the wings' functions, free objects in cycles, and give the pages of freed memory back to the system
    (glibc; elsewhere the allocator's choice), unless the process grew by less than `least` bytes since the last time: small
    stages would spend a tenth of their time on it, and the next ones make what was cached again. What lives on in small pieces
    keeps whole pages of free memory around it resident, in addition to what the next step takes from another allocator."""
    global _released_at
    if least and resident(os.getpid()) < _released_at + least:
        return
    _clear_caches()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
    _released_at = resident(os.getpid())


def _clear_caches() -> None:
    """Clear the caches of the wings' functions and of the expressions that the runtime compiled."""
    for name, module in list(sys.modules.items()):
        for value in vars(module).values() if name.split(".")[0] in _WINGS else ():
            if isinstance(value, _lru_cache_wrapper) and value.__module__.split(".")[0] in _WINGS:
                value.cache_clear()
            elif isinstance(value, IdentityCache):
                value._made.clear()  # it ships with every environment, which has no use for a method of it


def family(pid: int) -> Iterator[int]:
    """Yield a process and its children, and theirs."""
    yield pid
    with contextlib.suppress(psutil.Error):
        yield from (child.pid for child in psutil.Process(pid).children(recursive=True))


def resident(pid: int) -> int:
    """Count the bytes of a process that are in memory; 0 for one that has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
