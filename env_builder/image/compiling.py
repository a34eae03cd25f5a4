"""Compiles a room's runtime with the Python that will run it: runs in a container of the base image, imports nothing of ours.

In, on stdin: a line of JSON, path -> source of the runtime's modules. Out, on stdout: a line of JSON, path below the cache's
folder -> compiled module in base64: of the runtime, and of what it imports from the standard library (images of Python come
without, and compile all of it at every start). The bytes depend on Python and the sources alone: format 2 of marshal knows
nothing of what else the process holds, and a module that was compiled so is never compared with its source.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import marshal
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOM = "/room"
"""Where the runtime will lie."""
LATER = ("ctypes",)
"""What a room imports from the standard library once it runs."""
_UNCHECKED = 1


def main() -> None:
    """Read, compile, write."""
    sources: dict[str, str] = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory() as folder:
        for path, text in sources.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        sys.path.insert(0, folder)
        for path in sorted(sources):
            importlib.import_module(Path(path).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"))
        for name in LATER:
            importlib.import_module(name)
        specs = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
        files = {str(spec.origin) for spec in specs if spec is not None}
        library = sorted(file for file in files if file.endswith(".py") and not file.startswith(folder))
    texts = {path: Path(path).read_bytes() for path in library}
    texts |= {f"{ROOM}/{path}": text.encode() for path, text in sources.items()}
    cached = {path: f"{Path(path).stem}.{sys.implementation.cache_tag}.pyc" for path in texts}  # below `-X pycache_prefix`
    made = {str(Path(path.lstrip("/")).with_name(cached[path])): base64.b64encode(_compiled(path, text)).decode()
            for path, text in texts.items()}
    print(json.dumps(made), flush=True)


def _compiled(path: str, source: bytes) -> bytes:
    code = SourceFileLoader("module", path).source_to_code(source, path)
    return b"".join((
        importlib.util.MAGIC_NUMBER, _UNCHECKED.to_bytes(4, "little"), importlib.util.source_hash(source),
        marshal.dumps(code, 2)))


if __name__ == "__main__":
    main()
