"""Which address answers what: the API, and the files of the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from redrive.errors import CallFailed
from smart_redriver.oncall.console.api import Address, addresses
from smart_redriver.oncall.console.at_work import Asked, Console
from smart_redriver.oncall.console.guard import Guard, policy_of
from smart_redriver.oncall.console.openapi import describe
from smart_redriver.oncall.console.sessions import LOGIN_HELPS
from smart_redriver.oncall.terminal.exits import Misused, Refused
from smart_redriver.oncall.terminal.failures import explain

STATIC = Path(__file__).parent / "static"
#: What is asked is a letter of 1 MiB at the most, written as JSON.
_LARGEST_REQUEST = 8 * 1024 * 1024
_INLINE = re.compile(r"<script[^>]*>(.+?)</script>", re.DOTALL)


def make_app(console: Console, *, token: str, hosts: Collection[str]) -> ASGIApp:
    """The whole of what is served, behind the guard."""
    known = addresses(console)
    document = describe(known)

    async def page(_: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def openapi(_: Request) -> Response:
        return JSONResponse(document)

    routes = [
        Route("/", page),
        Route("/api/openapi.json", openapi),
        *(_route(console, one) for one in known),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    inline = _INLINE.findall((STATIC / "index.html").read_text(encoding="utf-8"))
    policy = policy_of([_sha256(one) for one in inline])
    served = Starlette(routes=routes, exception_handlers={HTTPException: _no_address})
    return Guard(served, token=token, hosts=hosts, policy=policy)


class _Json(JSONResponse):
    """An answer in ASCII: what was found in letters may hold halves of characters, which have no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _route(console: Console, address: Address) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            body = await _body(request) if address.method == "POST" else None
            said = address.read(request.query_params, body)
            asked = Asked(path=request.path_params, said=said)
            answer = await run_in_threadpool(address.answer, asked)
            return _Json(answer, address.status)
        except Exception as fault:
            console.sessions.forget(fault)
            return _refusal(fault)

    return Route(address.path, endpoint, methods=[address.method])


async def _body(request: Request) -> Any:
    """The JSON of a request. Raises Misused."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise Misused("A request is application/json.")
    taken = bytearray()
    async for part in request.stream():
        taken += part
        if len(taken) > _LARGEST_REQUEST:
            raise Misused("That is more than any letter.")
    try:
        said = json.loads(taken or b"{}")
        # Python reads more than JSON has: numbers beyond all bounds, and halves of characters.
        json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
        return said
    except (ValueError, RecursionError) as fault:
        raise Misused(f"That is no JSON: {fault}.") from fault


def _refusal(fault: Exception) -> Response:
    sentence, _ = explain(fault)
    status, kind = 500, "bug"
    if isinstance(fault, Misused):
        status, kind = 400, "usage"
    elif isinstance(fault, Refused):
        status, kind = 409, "refused"
    elif isinstance(fault, CallFailed):
        status, kind = 503, "credentials" if fault.code in LOGIN_HELPS else "aws"
    return JSONResponse({"error": sentence, "kind": kind}, status)


async def _no_address(request: Request, fault: Exception) -> Response:
    """There is nothing, or nothing by this method: told as all other faults are."""
    assert isinstance(fault, HTTPException)  # noqa: S101 - what it is registered for
    sentence = f"There is no address {request.url.path}: /api/openapi.json lists all."
    if fault.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        sentence = f"{request.url.path} takes no {request.method}."
    told = {"error": sentence, "kind": "usage"}
    return JSONResponse(told, fault.status_code, headers=fault.headers)


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
