"""The company's own application as the third host of a site: it answers the port's requests itself (tier `real`).

In: how the application is started, and the folder that it keeps its data in, as of a task's start. Out: a port. For each
episode the folder is copied and a process of its own started on a port of loopback, or a container of the company's image on a
Docker network of its own without a way out, so that episodes share nothing; answers are parsed into trees as recorded pages
are. Forms, downloads and the ledger are judged by the same code as in other hosts.
Sees: what the application answers to the requests of a browser without scripts. Does not see: what scripts would ask for, and
the clock: where a page shows the time, the application's own goes on.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from email.message import Message
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlencode, urlsplit

from env_builder.runtime.site.port import Delivery, PortAnswer, PortRequest, SitePort
from env_builder.site.parsing import collapse, parse
from warehouse.errors import Unavailable

FOLDER, PORT = "{folder}", "{port}"
"""What stands in a command for the copied folder and the port to listen on."""
CONTAINER_FOLDER, CONTAINER_PORT = "/data", 8000
"""What they are in a container."""
_PATIENCE = 30.0
"""Seconds that an application may take to start."""
_LONGEST = 32 << 20
"""Bytes of an answer that are read."""


class ApplicationPort(SitePort):
    """One visitor of an application: cookies are kept, redirects are left to the browser."""

    def __init__(self, number: int, origin: str, logins: Mapping[str, tuple[str, str]] | None = None,
                 host: str = "127.0.0.1") -> None:
        """Take the port's number and the site's scheme and host, as its pages call it.

        `logins`: login -> (password of the environment, password of the application), exchanged in what is posted.
        `host`: where the application listens."""
        self._host, self._number = host, number
        self._origin = urlsplit(origin)
        self._logins = logins or {}
        self._cookies: dict[str, str] = {}

    def ask(self, request: PortRequest) -> PortAnswer:
        connection = http.client.HTTPConnection(self._host, self._number, timeout=_PATIENCE)
        try:
            body = None if request.form is None else urlencode(self._exchanged(request.form))
            connection.request(request.method, request.url, body, self._headers(body is not None))
            response = connection.getresponse()
            content = response.read(_LONGEST)
        except OSError as error:
            raise Unavailable("the application does not answer", f"{self._host}:{self._number}",
                              "look at its log, and at the command that starts it") from error
        finally:
            connection.close()
        self._keep_cookies(response.headers)
        return self._answer(request, response, content)

    def _headers(self, has_body: bool) -> dict[str, str]:
        headers = {"Host": self._origin.netloc, "Accept": "text/html,*/*", "Referer": self._origin.geturl(),
                   "X-Forwarded-Proto": self._origin.scheme, "Origin": self._origin.geturl()}
        if self._cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in sorted(self._cookies.items()))
        return headers | ({"Content-Type": "application/x-www-form-urlencoded"} if has_body else {})

    def _exchanged(self, form: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        own = {value for _, value in form}
        passwords = dict(pair for login, pair in self._logins.items() if login in own)
        return [(name, passwords.get(value, value)) for name, value in form]

    def _keep_cookies(self, headers: Message) -> None:
        for line in headers.get_all("Set-Cookie") or ():
            name, _, rest = str(line).partition("=")
            value, _, attributes = rest.partition(";")
            if "max-age=0" in attributes.replace(" ", "").lower() or not value.strip('" '):
                self._cookies.pop(name.strip(), None)
            else:
                self._cookies[name.strip()] = value.strip()

    def _answer(self, request: PortRequest, response: http.client.HTTPResponse, content: bytes) -> PortAnswer:
        kind = response.headers.get_content_type()
        location = response.headers.get("Location")
        if location is not None and 300 <= response.status < 400:
            return PortAnswer(response.status, "real", location=location)
        if kind == "text/html":
            charset = response.headers.get_content_charset() or "utf-8"
            return PortAnswer(response.status, "real", page=collapse(parse(content.decode(charset, "replace"))))
        name = response.headers.get_filename() or unquote(urlsplit(request.url).path.rstrip("/").rpartition("/")[2])
        return PortAnswer(response.status, "real", file=Delivery(name, kind, content))


class Application:
    """How an application is started, with its data as of a task's start."""

    def __init__(self, command: Sequence[str], data: Path, origin: str,
                 logins: Mapping[str, tuple[str, str]] | None = None, environment: Mapping[str, str] | None = None,
                 image: str | None = None) -> None:
        """Take the words of the command, with `{folder}` and `{port}` in them, and the folder to copy for each episode.

        `environment`: variables besides `PATH`. `image`: the Docker image that the command runs in, without a network's way
        out; its folder is `/data`, its port 8000. An empty command is the image's own."""
        self.image = image
        self.command = tuple(command)
        self.data = data
        self.origin = origin
        self.logins = dict(logins or {})
        self.environment = dict(environment or {})

    def started(self) -> RunningApplication:
        """Start it for one episode; a context manager ends it. Errors: Unavailable where it does not listen in time."""
        return RunningApplication(self) if self.image is None else ContainedApplication(self)

    def filled_command(self, folder: str, number: int) -> list[str]:
        """Return the command for a folder and a port."""
        return [word.replace(FOLDER, folder).replace(PORT, str(number)) for word in self.command]


class RunningApplication:
    """An application's process and its copy of the data."""

    def __init__(self, application: Application) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="traceroom-application-"))
        shutil.copytree(application.data, self._folder / "data")
        host, number, command, variables = self._place(application)
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, cwd=self._folder / "data", stdout=log, stderr=log, start_new_session=True,
                                             env={"PATH": os.environ.get("PATH", ""), **variables})
        self._wait(host, number)
        self.port = ApplicationPort(number, application.origin, application.logins, self._host(host))

    def _place(self, application: Application) -> tuple[str, int, list[str], Mapping[str, str]]:
        """Return where it will listen, and what starts it: a command and its variables."""
        number = _free_port()
        return ("127.0.0.1", number, application.filled_command(str(self._folder / "data"), number), application.environment)

    def _host(self, name: str) -> str:
        """Return the address of what listens; empty: not there yet."""
        return name

    def _wait(self, name: str, number: int) -> None:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            if host := self._host(name):
                with socket.socket() as trial:
                    trial.settimeout(1.0)
                    if trial.connect_ex((host, number)) == 0:
                        return
            time.sleep(0.05)
        log = (self._folder / "log").read_text("utf-8", "replace")[-500:]
        self.close()
        why = log.strip() or "it wrote nothing"
        raise Unavailable(f"the application does not listen: {why}", hint="try its command by hand")

    def close(self) -> None:
        """End the process and remove its data."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class ContainedApplication(RunningApplication):
    """A container of the company's image, alone on an internal network of Docker."""

    def _place(self, application: Application) -> tuple[str, int, list[str], Mapping[str, str]]:
        name = self._folder.name
        _docker("network", "create", "--internal", name)
        variables = [word for key, value in application.environment.items() for word in ("--env", f"{key}={value}")]
        command = ["docker", "run", "--rm", "--name", name, "--network", name, "--volume",
                   f"{self._folder / 'data'}:{CONTAINER_FOLDER}", "--workdir", CONTAINER_FOLDER,
                   "--security-opt=no-new-privileges", *variables, str(application.image)]
        return name, CONTAINER_PORT, command + application.filled_command(CONTAINER_FOLDER, CONTAINER_PORT), {}

    def _host(self, name: str) -> str:
        return _docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name, must=False)

    def close(self) -> None:
        """Remove the container, its network and its data."""
        _docker("rm", "--force", self._folder.name, must=False)
        super().close()
        _docker("network", "rm", self._folder.name, must=False)


def _docker(*words: str, must: bool = True) -> str:
    """Return what a command of Docker prints; empty where it fails and need not work."""
    try:
        done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise Unavailable("no Docker client is installed", hint="install Docker, or give a command alone") from error
    if must and done.returncode:
        raise Unavailable(f"docker {words[0]} failed: {done.stderr.strip()[-300:]}", hint="look whether the engine answers")
    return done.stdout.strip() if done.returncode == 0 else ""


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        number: int = trial.getsockname()[1]
        return number
