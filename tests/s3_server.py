"""moto's server of S3, one request at a time: a conditional write is then atomic, as S3's is. Arguments: host, port."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


def main(host: str, port: str) -> None:
    """Serve until terminated."""
    os.environ["MOTO_PORT"] = port
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server, turn = DomainDispatcherApplication(create_backend_app), Lock()

    def one_at_a_time(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with turn:
            return list(server(environ, start_response))

    run_simple(host, int(port), one_at_a_time, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(*sys.argv[1:])
