"""The console's web server: a socket on loopback, the routes of API and files, and an orderly end.

It keeps out every other page in the browser, and everybody else. Another page that the person has open can make the
browser send requests here. But it can't know the token, which is in the fragment of the address and therefore in no
request, log or referrer, and it can't send `Authorization` across origins. If it has made its own host name lead here
(DNS rebinding), the `Host` header shows that.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import socket
from collections.abc import Collection
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from smart_redriver.engine.errors import CallFailed
from smart_redriver.oncall.console.api import Address, addresses, describe
from smart_redriver.oncall.console.cache import LOGIN_HELPS, Sessions
from smart_redriver.oncall.console.tasks import Asked, Console
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Misused, Refused, explain

STATIC = Path(__file__).parent / "static"
#: The largest request is a letter of 1 MiB, written as JSON.
_LARGEST_REQUEST = 8 * 1024 * 1024
_INLINE = re.compile(r"<script[^>]*>(.+?)</script>", re.DOTALL)


def make_app(console: Console, *, token: str, hosts: Collection[str]) -> ASGIApp:
    """Everything that is served, behind the guard."""
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
    """An answer in ASCII, because texts of letters or AWS may hold halves of characters, which UTF-8 can't encode."""

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
    kind, _, _ = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() != "application/json":
        raise Misused("A request is application/json.")
    taken = bytearray()
    async for part in request.stream():
        taken += part
        if len(taken) > _LARGEST_REQUEST:
            raise Misused("That is more than any letter.")
    try:
        said = json.loads(taken or b"{}")
        # Python reads more than JSON allows: infinite numbers, and halves of characters.
        json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
        return said
    except (ValueError, RecursionError) as fault:
        raise Misused(f"That is not JSON: {fault}.") from fault


def _refusal(fault: Exception) -> Response:
    sentence, _ = explain(fault)
    status, kind = 500, "bug"
    if isinstance(fault, Misused):
        status, kind = 400, "usage"
    elif isinstance(fault, Refused):
        status, kind = 409, "refused"
    elif isinstance(fault, CallFailed):
        status, kind = 503, "credentials" if fault.code in LOGIN_HELPS else "aws"
    return _Json({"error": sentence, "kind": kind}, status)


async def _no_address(request: Request, fault: Exception) -> Response:
    """Answer a request for an unknown address or method, in the same form as other faults."""
    assert isinstance(fault, HTTPException)  # noqa: S101 - what it is registered for
    sentence = f"There is no address {request.url.path}: /api/openapi.json lists all."
    if fault.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        sentence = f"{request.url.path} takes no {request.method}."
    told = {"error": sentence, "kind": "usage"}
    return JSONResponse(told, fault.status_code, headers=fault.headers)


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


_HTTP = 80


def serve(session: Session, *, host: str, port: int, is_read_only: bool) -> Exit:
    """Serve until Ctrl-C. Raises Refused if it can't listen at the address, or if the stack can't be read."""
    _ = session.each_queue()  # a missing stack is reported here, and not first in the browser
    listening = _listen(host, port)
    bound, port, *_ = listening.getsockname()
    address = _spelt(host, port)
    token = secrets.token_urlsafe(32)
    console = Console(sessions=Sessions(session), is_read_only=is_read_only)
    app = make_app(console, token=token, hosts=names(host, bound, port))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off"
    )
    terminal = session.terminal
    terminal.result({"url": f"http://{address}/#token={token}", "read_only": is_read_only})
    terminal.say(f"The console of {session.stack}: http://{address}/#token={token}")
    terminal.say("Anyone with this address acts with your credentials. Ctrl-C ends it.")
    if not ipaddress.ip_address(bound).is_loopback:
        terminal.warn(f"{host} is not this machine alone: letters travel there unencrypted.")
    terminal.out.flush()
    Thread(target=console.get_ready, daemon=True).start()
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        terminal.say()
    finally:
        listening.close()
        console.tasks.close()
    return Exit.DONE


def names(host: str, bound: str, port: int) -> list[str]:
    """The values of `Host` in requests for the page. Browsers shorten them, use lower case, and omit HTTP's port."""
    names = {host.lower(), bound}
    if ipaddress.ip_address(bound).is_loopback:
        names.add("localhost")
    spelt = [_spelt(name, port) for name in sorted(names)]
    return spelt + [one.removesuffix(f":{_HTTP}") for one in spelt if port == _HTTP]


def _listen(host: str, port: int) -> socket.socket:
    """A socket at one address. Raises Refused if that is not possible, and Misused for all addresses at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        _refuse_everywhere(str(address[0]))
        with ExitStack() as until_bound:
            listening = until_bound.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()  # a client that asks as soon as it sees the address has to wait, but is not refused
            until_bound.pop_all()
    except OSError as fault:
        raise Refused(
            f"{_spelt(host, port)} can't be listened at: {fault.strerror or fault}. Choose another --port or --host."
        ) from fault
    return listening


def _refuse_everywhere(address: str) -> None:
    if ipaddress.ip_address(address).is_unspecified:
        raise Misused(f"--host {address} would listen everywhere. Name one address.")


def _spelt(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_SAME = ("same-origin", "none")


def policy_of(script_hashes: Collection[str]) -> str:
    """The Content-Security-Policy: only content of this server and these inline scripts may run."""
    scripts = " ".join(f"'sha256-{one}'" for one in script_hashes)
    return (
        f"default-src 'self'; script-src 'self' {scripts}; object-src 'none'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class Guard:
    """Middleware around everything that is served."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str], policy: str) -> None:
        """`hosts` are the values of `Host`, including the port, that this server accepts."""
        self._app = app
        self._token = token.encode()
        self._hosts = frozenset(hosts)
        self._headers = {
            "Content-Security-Policy": policy,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cache-Control": "no-store",  # letters hold customers' data
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer with the reason why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        if refusal := self._refusal(scope["path"], Headers(scope=scope)):
            status, why = refusal
            response = JSONResponse({"error": why, "kind": "token"}, status)
            await response(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _refusal(self, path: str, headers: Headers) -> tuple[int, str] | None:
        if headers.get("host") not in self._hosts:
            return 421, "This server is not known by that name."
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return 403, "Another page may not ask here."
        if headers.get("sec-fetch-site", "none") not in _SAME and path.startswith("/api"):
            return 403, "Another page may not ask here."
        if path.startswith("/api") and not self._knows_token(headers):
            return 401, "Open the address that `redrive console` printed: it has the token in it."
        return None

    def _knows_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind == "Bearer" and hmac.compare_digest(given.encode(), self._token)
