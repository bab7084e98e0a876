"""One browser for the tests of a file, and for each test a tab at a console of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from emulator.chromium import PATIENCE_MS, chromium
from fakes.faults import Script, Wire, nothing
from smart_redriver.oncall.console.cache import Notepad
from tests.browser.served import served
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK


@pytest.fixture(scope="module")  # while it is open, its event loop counts as running in this thread
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with chromium(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """In the end the log of its passes has to be one of the protocol."""
    monkeypatch.chdir(tmp_path)  # where letters are kept
    desk = Desk()
    yield desk
    assert desk.redriver.trace.faults == []


@dataclass(kw_only=True)
class Seen:
    """What a browser noticed by itself."""

    hosts: set[str]
    troubles: list[str]


@pytest.fixture
def seen() -> Seen:
    return Seen(hosts=set(), troubles=[])


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, desk: Desk, seen: Seen) -> Iterator[Open]:
    """Opens the desk's console in a tab whose clock stands still until it is told to go on."""
    with ExitStack() as stack:

        def open_one(
            *, is_read_only: bool = False, token: str | None = None, script: Script = nothing
        ) -> Page:
            session = desk.session(Wire(script), Notepad(spared_stack=STACK))
            address = stack.enter_context(served(session, is_read_only=is_read_only))
            context = stack.enter_context(
                browser.new_context(viewport={"width": 1280, "height": 900})
            )
            context.set_default_timeout(PATIENCE_MS)
            page = context.new_page()
            page.on("request", lambda one: seen.hosts.add(one.url.split("/")[2]))
            page.on("pageerror", lambda one: seen.troubles.append(str(one)))
            page.on(
                "console",
                lambda one: seen.troubles.append(one.text) if one.type == "error" else None,
            )
            page.clock.install()
            page.goto(address if token is None else f"{address.partition('#')[0]}#token={token}")
            return page

        yield open_one
