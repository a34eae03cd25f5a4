"""Which packages the tests of a project need: what its metadata names without tools, and what a run shows to be missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .metadata import Metadata, name_of

_TOOLS = re.compile(
    r"black|ruff|isort|flake8.*|pyflakes|pycodestyle|pydocstyle|pylint|mypy|pyright|basedpyright|ty|pyre-check|bandit|safety|vulture"
    r"|pre-commit|tox.*|nox|pip|pip-tools|wheel|build|twine|hatch|hatchling|poetry.*|pdm.*|uv|flit.*|virtualenv|check-manifest|pyroma"
    r"|bumpversion|bump2version|bump-my-version|commitizen|towncrier|python-semantic-release|interrogate|codespell|docformatter"
    r"|autoflake|pyupgrade|yapf|sphinx.*|mkdocs.*|mkdocstrings.*|myst-.*|furo|pdoc.*|recommonmark|numpydoc|jupyter.*|nbsphinx"
    r"|coverage|coveralls|codecov|pytest-cov|pytest-xdist|pytest-sugar|pytest-html|pytest-randomly|pytest-random-order"
    r"|pytest-rerunfailures|pytest-clarity|pytest-icdiff|pytest-pretty|pytest-watch.*|pytest-flake8|pytest-black|pytest-mypy"
    r"|pytest-ruff|pytest-github-actions-annotate-failures|pytest-codspeed|pytest-runner|ipdb|pudb|pdbpp|types-.*|.*-stubs|setuptools"
    r"|setuptools[-_]scm|versioneer|nose|nose2|green|invoke|editables|licensecheck|refurb|pyperf|gitpython|cibuildwheel")
"""Packages whose work is not to run tests: checks of style and types, documents, releases, counting. Taken where a file imports
them."""
_IMPORTED_AS = {
    "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless", "dateutil": "python-dateutil",
    "dotenv": "python-dotenv", "git": "GitPython", "google.protobuf": "protobuf", "jose": "python-jose", "jwt": "PyJWT",
    "magic": "python-magic", "OpenSSL": "pyOpenSSL", "PIL": "Pillow", "pkg_resources": "setuptools<81",
    "serial": "pyserial", "sklearn": "scikit-learn", "skimage": "scikit-image", "slugify": "python-slugify",
    "yaml": "PyYAML", "zmq": "pyzmq", "zoneinfo": "tzdata", "Crypto": "pycryptodome", "MySQLdb": "mysqlclient",
    "psycopg2": "psycopg2-binary", "socks": "PySocks", "docx": "python-docx", "multipart": "python-multipart",
    "rest_framework": "djangorestframework", "websocket": "websocket-client", "ruamel": "ruamel.yaml"}
_FIXTURES = {
    "benchmark": "pytest-benchmark", "mocker": "pytest-mock", "httpx_mock": "pytest-httpx", "respx_mock": "respx",
    "requests_mock": "requests-mock", "responses": "responses", "freezer": "pytest-freezer", "faker": "faker",
    "snapshot": "syrupy", "datadir": "pytest-datadir", "shared_datadir": "pytest-datadir",
    "data_regression": "pytest-regressions", "file_regression": "pytest-regressions",
    "num_regression": "pytest-regressions", "event_loop": "pytest-asyncio", "anyio_backend": "anyio",
    "aiohttp_client": "pytest-aiohttp", "aiohttp_server": "pytest-aiohttp", "db": "pytest-django",
    "client": "pytest-django", "settings": "pytest-django", "rf": "pytest-django", "qtbot": "pytest-qt",
    "subtests": "pytest-subtests", "fs": "pyfakefs", "time_machine": "time-machine", "httpserver": "pytest-httpserver",
    "httpbin": "pytest-httpbin", "cov": "pytest-cov", "order": "pytest-order", "fake_process": "pytest-subprocess",
    "fp": "pytest-subprocess", "original_datadir": "pytest-datadir", "lazy_fixture": "pytest-lazy-fixture",
    "tmp_workdir": "pytest-workdir", "console_mock": "pytest-console-scripts", "script_runner": "pytest-console-scripts",
    "socket_enabled": "pytest-socket"}
_MISSING = re.compile(r"No module named '([\w.]+)'|No module named ([\w.]+)$", re.MULTILINE)
_NO_FIXTURE = re.compile(r"fixture '(\w+)' not found")
_ASYNC = re.compile(r"async def functions are not natively supported|Unknown config option: asyncio_mode")
_ZONES = re.compile(r"No time zone found with key|ZoneInfoNotFoundError")


def needed(stated: Sequence[Metadata], imported: set[str]) -> tuple[list[str], list[str]]:
    """Return the requirements to begin with, of the latest tree first, and those that may turn out to be missing."""
    first: dict[str, str] = {}
    rest: dict[str, str] = {}
    modules = {_key(each) for each in imported}
    for each in stated:
        for requirement in each.requirements:
            name = name_of(requirement) or ""
            is_tool = _TOOLS.fullmatch(name) is not None and not modules & {_key(name), _key(name.removeprefix("python-"))}
            (rest if is_tool else first).setdefault(name, requirement)
        for requirement in each.others:
            rest.setdefault(name_of(requirement) or "", requirement)
    first.setdefault("pytest", "pytest")
    return list(first.values()), [requirement for name, requirement in rest.items() if name not in first]


def of_missing(messages: str, others: Iterable[str]) -> list[str]:
    """Return requirements for what a run says it lacks: as the metadata has them where it names such a package."""
    named = {_key(name_of(each) or ""): each for each in others}
    wanted: list[str] = []
    for groups in _MISSING.findall(messages):
        module = next(filter(None, groups))
        top = module.partition(".")[0]
        package = _IMPORTED_AS.get(module) or _IMPORTED_AS.get(top) or top
        wanted.append(named.get(_key(package)) or named.get(_key(top)) or package)
    for fixture in _NO_FIXTURE.findall(messages):
        package = _FIXTURES.get(fixture)
        wanted += [named.get(_key(package), package)] if package is not None else [
            named[key] for key in (_key(f"pytest-{fixture}"),) if key in named]
    wanted += ["pytest-asyncio"] if _ASYNC.search(messages) else []
    wanted += ["tzdata"] if _ZONES.search(messages) else []
    return list(dict.fromkeys(each for each in wanted if name_of(each) is not None))


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "", name).lower()
