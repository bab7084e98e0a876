"""A subscriber of SNS over HTTP: a real web server of the test's own, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from types import TracebackType
from typing import Self

POISON = "poison"
_PATIENCE_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """One POST, with the status that it was answered with. Names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: str
    status: int


class Endpoint:
    """Answers 503 while it `is_down`, 400 for poison until it `takes_poison`, else 200; it knows nothing but POST."""

    def __init__(self) -> None:
        self.is_down = True
        self.takes_poison = False
        self.posts: list[Posted] = []
        self._tokens: SimpleQueue[str] = SimpleQueue()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name that http.server calls
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self.send_response(endpoint.take(self.path, dict(self.headers), body))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing to standard error."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/orders?key=1"

    def take(self, path: str, headers: Mapping[str, str], body: str) -> int:
        """Remember a POST; the status to answer with."""
        told = {name.lower(): value for name, value in headers.items()}
        if told.get("x-amz-sns-message-type") == "SubscriptionConfirmation":
            self._tokens.put(json.loads(body)["Token"])
            return 200
        is_bad = POISON in body and not self.takes_poison
        status = 503 if self.is_down else 400 if is_bad else 200
        self.posts.append(Posted(path=path, headers=told, body=body, status=status))
        return status

    def token(self) -> str:
        """What SNS sent for its subscription to be confirmed."""
        return self._tokens.get(timeout=_PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
