"""`redrive console`: the command as a web page, served to one person on their own machine.

`verbs` declares what people can order. Everything that is shown or changed goes through the verbs, on terminals that
are a page instead of a screen:

    app         the server: socket, routes, the end of the process; `Guard` keeps other pages out
    api         every address of the API, once; `describe` makes its description
    views       what is shown: queues, causes, letters, one letter, history
    timeline    one queue's last hours
    tasks       orders, each with its plan, question, progress and end
    cache       sessions, and the ledger, read once for all requests within seconds
    static      the page
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from smart_redriver.oncall.terminal.exits import Exit, Refused

if TYPE_CHECKING:
    from smart_redriver.oncall.deployment.session import Session

#: The packages that the extra `console` adds to `oncall`, by the names that are imported.
_NEEDED = ("starlette", "uvicorn")


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `console`. Raises Refused if the extra is not installed."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise Refused(
            f"redrive console needs {' and '.join(missing)}: install smart-redriver[console], the package with "
            "this extra."
        )
    from smart_redriver.oncall.console.app import serve

    return serve(session, host=given["host"], port=given["port"], is_read_only=given["read_only"])
