"""Keeps out every other page of the browser, and everybody else.

A page that the person has open elsewhere can make the browser send requests here. It can't know the token, which is
in the fragment of the address and so in no request, log or referrer; it can't send `Authorization` across origins;
and where it has made its own host name lead here (DNS rebinding), the `Host` header says so.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SAME = ("same-origin", "none")


def policy_of(script_hashes: Collection[str]) -> str:
    """The Content-Security-Policy: what is not of this server, nor one of these inline scripts, does not run."""
    scripts = " ".join(f"'sha256-{one}'" for one in script_hashes)
    return (
        f"default-src 'self'; script-src 'self' {scripts}; object-src 'none'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class Guard:
    """Middleware around everything that is served."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str], policy: str) -> None:
        """`hosts` are the values of `Host`, port included, under which this server is known."""
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
        """Let a request through, or answer why not."""
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
