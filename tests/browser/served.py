"""The console served on a real socket, over a session of a test's own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from smart_redriver.oncall.console.app import make_app
from smart_redriver.oncall.console.cache import Sessions
from smart_redriver.oncall.console.tasks import Console
from smart_redriver.oncall.deployment.session import Session

TOKEN = "secret-of-the-test"


@contextmanager
def served(session: Session, *, is_read_only: bool = False) -> Iterator[str]:
    """The console's address, token included, while entered."""
    console = Console(sessions=Sessions(session), is_read_only=is_read_only)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        app = make_app(console, token=TOKEN, hosts=[host])
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://{host}/#token={TOKEN}"
        finally:
            console.tasks.close()
            server.should_exit = True
            thread.join()
