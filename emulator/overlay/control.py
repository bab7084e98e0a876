"""The door through which tests move the clock: `POST /step` on its own loopback port.

The port is separate, because MiniStack's gateway may use TLS and require signatures.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .turns import Stepper


def serve(stepper: Stepper, port_file: Path) -> None:
    """Serve in a thread, on a free port whose number is then written to `port_file`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Body: `{"until": epoch seconds, "patience": real seconds}`."""
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                stepper.step_to(float(request["until"]), float(request["patience"]))
            except TimeoutError as fault:
                self._answer(504, {"error": str(fault)})
            except Exception as fault:  # the driver shows it; a dropped connection says nothing
                self._answer(500, {"error": repr(fault)})
            else:
                self._answer(200, {})

        def _answer(self, status: int, answer: dict[str, str]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: one line for each step would drown MiniStack's log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name="overlay-control").start()
    # Written as a whole and then renamed, because the reader waits for the file to appear.
    draft = port_file.with_suffix(".draft")
    draft.write_text(str(server.server_port))
    draft.rename(port_file)
