"""Ground floor: the types, the tables and the one door to DuckDB. Imports nothing of ours.

    from warehouse import Store
    with Store.published(Path("out/warehouse.duckdb")) as store:
        print(store.table("mart.tasks"))

`Store` opens a warehouse; records such as `Event`, `Session`, `Task`, `Outcome`, `Fact` and `Decision` describe its rows, and
every error of ours is a `TraceroomError`. A name is loaded when it is asked for: `--help` needs no DuckDB.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warehouse.errors import InputError, TraceroomError
    from warehouse.records import Decision, Event, Fact, Outcome, Session, Task, Turn
    from warehouse.store import Store

__all__ = ["Decision", "Event", "Fact", "InputError", "Outcome", "Session", "Store", "Task", "TraceroomError", "Turn"]
_MODULES = {"Store": "store", "InputError": "errors", "TraceroomError": "errors"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'warehouse' has no attribute {name!r}")
    return getattr(import_module(f"warehouse.{_MODULES.get(name, 'records')}"), name)
