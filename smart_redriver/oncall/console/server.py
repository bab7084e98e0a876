"""Serves the console: a socket on loopback, its address with the token, and an orderly end."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from contextlib import ExitStack
from threading import Thread

import uvicorn

from smart_redriver.oncall.console.app import make_app
from smart_redriver.oncall.console.at_work import Console
from smart_redriver.oncall.console.sessions import Sessions
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Misused, Refused

_HTTP = 80


def serve(session: Session, *, host: str, port: int, is_read_only: bool) -> Exit:
    """Serve until Ctrl-C. Raises Refused where the address can't be listened at, and what the stack refuses."""
    _ = session.each_queue()  # a stack that is not there is said here, and not first in the browser
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
    terminal.say("Whoever has this address acts with your credentials. Ctrl-C ends it.")
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
    """The values of `Host` with which the page is asked for: browsers make them short, and small, and leave out HTTP's port."""
    names = {host.lower(), bound}
    if ipaddress.ip_address(bound).is_loopback:
        names.add("localhost")
    spelt = [_spelt(name, port) for name in sorted(names)]
    return spelt + [one.removesuffix(f":{_HTTP}") for one in spelt if port == _HTTP]


def _listen(host: str, port: int) -> socket.socket:
    """A socket at one address. Raises Refused where that can't be had, and Misused for all addresses at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        _refuse_everywhere(str(address[0]))
        with ExitStack() as until_bound:
            listening = until_bound.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
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
