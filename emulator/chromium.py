"""A headless Chromium out of an npm package, with its own libraries and font: no root, no download."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from emulator.environments import ROOT

#: Where `make node_modules/.ready` unpacks it.
UNPACKED = ROOT / "node_modules" / ".chromium"
#: A condition that has not come by then never will. A failure that names it is better than a test that hangs.
PATIENCE_MS = 600_000
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """The browser, while entered. `folder` keeps its font files."""
    fonts = folder / "fonts.conf"
    fonts.write_text(_FONTS.format(fonts=UNPACKED / "fonts", cache=folder / "cache"))
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "LD_LIBRARY_PATH": str(UNPACKED / "al2023" / "lib"),
        "FONTCONFIG_FILE": str(fonts),
        "LC_ALL": "en_US.UTF-8",  # from `C` it makes a language that JavaScript refuses
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=UNPACKED / "chromium",
            # Its sandbox needs rights that a container lacks, and the only page that it opens is ours.
            args=["--no-sandbox", "--disable-gpu"],
            env=environment,
        )
        yield browser
        browser.close()
