"""The addresses of the browser over HTTP: who asked, which page that is, and what a form says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pipelines.browser import corrections, editing, reviews, shown
from pipelines.browser.exports import LISTS, exported
from pipelines.browser.framed import FramedPage
from pipelines.browser.guard import COOKIE, ENTER, FIELD, HEADERS, STYLE, AccessGuard, Guarded, policy
from pipelines.browser.pages import PAGES, Browser
from pipelines.inspection.list_files import FORMATS
from pipelines.settings import account_name
from warehouse.errors import InputError, Missing, TraceroomError

Row = dict[str, Any]
AUTHOR = "traceroom_author"
"""Cookie with the name that somebody corrected under last."""
YEAR_S = 365 * 24 * 3600


def application(out: Path, guard: AccessGuard) -> ASGIApp:
    """Return the browser on the folder that a run writes."""
    browser = Browser(out)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        browser.close()

    routes = [Route(path, _endpoint(browser, guard, work), methods=["GET"]) for path, work in PAGES.items()]
    routes += [Route(f"{path}.{ending}", _exported(browser), methods=["GET"]) for path in LISTS for ending in FORMATS]
    routes += [
        Route(ENTER, _entered(guard), methods=["GET", "POST"]), Route(STYLE, _style, methods=["GET"]),
        Route("/correct", _corrected(browser, guard), methods=["POST"]),
        Route("/check", _edited(browser, guard), methods=["POST"]),
        Route("/review", _reviewed(browser, guard), methods=["POST"])]
    return Guarded(Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _nothing}), guard)


Endpoint = Callable[[Request], Any]


def _endpoint(browser: Browser, guard: AccessGuard, work: Callable[[Browser, QueryParams], Row | Response]) -> Endpoint:
    def made(request: Request) -> Response:
        try:
            own = (request.cookies.get(AUTHOR, ""),) if work is Browser.reviewed else ()
            answer = work(browser, request.query_params, *own)
            return answer if isinstance(answer, Response) else _page(guard, request, **answer)
        except TraceroomError as error:
            status = 404 if isinstance(error, Missing) else 400 if isinstance(error, InputError) else 500
            return _page(guard, request, "error", status, message=str(error))

    return made


def _exported(browser: Browser) -> Endpoint:
    def made(request: Request) -> Response:
        try:
            return exported(browser.library, request.url.path, request.query_params)
        except TraceroomError as error:
            return PlainTextResponse(f"{error}\n", 404 if isinstance(error, Missing) else 400)

    return made


def _page(guard: AccessGuard, request: Request, template: str, status: int = 200, **values: Any) -> Response:
    may_write = guard.holds(request.cookies)
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    answer = shown.page(
        template, status, **values, may_write=may_write, here=here, path=request.url.path, form_field=FIELD,
        form_token=guard.form_token(request.cookies) if may_write else "",
        author=request.cookies.get(AUTHOR, "") or ("" if guard.exposed else account_name("")))
    answer.headers["content-security-policy"] = policy(
        each.style for each in values.values() if isinstance(each, FramedPage))
    return answer


def _entered(guard: AccessGuard) -> Endpoint:
    async def entered(request: Request) -> Response:
        """Give the token: by the address that was printed, or in the form."""
        given = request.state.form.get("token", "") if request.method == "POST" else request.query_params.get("token", "")
        back = _own(request.state.form.get("back", "/") if request.method == "POST" else request.query_params.get("back", "/"))
        if not given:
            return _page(guard, request, "enter", back=back, wrong=False)
        if not guard.opens(given.strip()):
            return _page(guard, request, "enter", 403, back=back, wrong=True)
        answer = RedirectResponse(back, 303)
        answer.set_cookie(COOKIE, guard.session(), httponly=True, samesite="strict", secure=request.url.scheme == "https")
        return answer

    return entered


def _corrected(browser: Browser, guard: AccessGuard) -> Endpoint:
    async def corrected(request: Request) -> Response:
        form = request.state.form
        try:
            line = await run_in_threadpool(corrections.correct, browser.corrections, form, datetime.now(UTC))
        except InputError as error:
            return _page(guard, request, "error", 400, message=str(error))
        return _signed(request, f"{_own(form.get('back', '/'))}#corrected", line["by"])

    return corrected


def _edited(browser: Browser, guard: AccessGuard) -> Endpoint:
    async def edited(request: Request) -> Response:
        """Try a change of a check, or keep it; what is refused comes back with the form."""
        form = request.state.form
        problem, tried, status = "", None, 200
        try:
            if form.get("do") in ("keep", "withdraw"):
                line = await run_in_threadpool(editing.keep_edit, browser.library, browser.corrections, form, datetime.now(UTC))
                return _signed(request, f"{shown.address('/task', id=form.get('id', ''))}#corrected", line["by"])
            tried = await run_in_threadpool(editing.try_edit, browser.workbench, browser.library, browser.corrections, form)
        except InputError as error:
            problem, status = str(error), 400
        except TraceroomError as error:
            return _page(guard, request, "error", 404 if isinstance(error, Missing) else 500, message=str(error))
        try:
            values = editing.edit_page(browser.library, form.get("id", ""), form.get("check", ""), form.get("kind", ""), form)
        except Missing as error:
            return _page(guard, request, "error", 404, message=str(error))
        return _page(guard, request, **{**values, "tried": tried, "problem": problem}, status=status)

    return edited


def _reviewed(browser: Browser, guard: AccessGuard) -> Endpoint:
    async def reviewed(request: Request) -> Response:
        form = request.state.form
        try:
            review = await run_in_threadpool(reviews.answer, browser.reviews, form, datetime.now(UTC))
        except InputError as error:
            return _page(guard, request, "error", 400, message=str(error))
        return _signed(request, _own(form.get("back", "/reviews")), review["reviewer"])

    return reviewed


def _signed(request: Request, back: str, author: str) -> Response:
    """Go back, and keep who wrote."""
    answer = RedirectResponse(back, 303)
    answer.set_cookie(AUTHOR, _ascii(author), max_age=YEAR_S, httponly=True, samesite="strict",
                      secure=request.url.scheme == "https")
    return answer


def _ascii(name: str) -> str:
    return name if name.isascii() and name.isprintable() and not set(name) & set('";\\,') else ""


def _own(path: str) -> str:
    """Return a path of this server; anything else is its first page."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


async def _style(request: Request) -> Response:
    return Response(shown.style(), media_type="text/css", headers={**HEADERS, "cache-control": "no-cache"})


async def _nothing(request: Request, error: Exception) -> Response:
    return PlainTextResponse("There is no such page.\n", 404)
