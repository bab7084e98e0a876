"""What the console's page has of others is what their packages have, at the versions that are pinned,
with their licences.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.package.imports import ROOT

VENDOR = ROOT / "smart_redriver" / "oncall" / "console" / "static" / "vendor"
MODULES = ROOT / "node_modules"
PLACES = {
    "preact.mjs": "preact/dist/preact.mjs",
    "hooks.mjs": "preact/hooks/dist/hooks.mjs",
    "htm.mjs": "htm/dist/htm.mjs",
    "uPlot.esm.js": "uplot/dist/uPlot.esm.js",
    "uPlot.min.css": "uplot/dist/uPlot.min.css",
    "LICENSE.preact": "preact/LICENSE",
    "LICENSE.htm": "htm/LICENSE",
    "LICENSE.uplot": "uplot/LICENSE",
}


def test_nothing_else_is_there() -> None:
    assert {one.name for one in VENDOR.iterdir()} == {*PLACES, "README.md"}


@pytest.mark.parametrize("name", PLACES)
def test_a_file_is_the_packages_byte_for_byte(name: str) -> None:
    assert (VENDOR / name).read_bytes() == (MODULES / PLACES[name]).read_bytes()


def test_their_versions_are_told_and_pinned() -> None:
    told = dict(
        re.findall(
            r"\[(preact|htm|uplot)\]\([^)]*\) \| ([\d.]+)", (VENDOR / "README.md").read_text()
        )
    )

    pinned = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert told == {name: pinned[f"node_modules/{name}"]["version"] for name in told}
    assert set(told) == {"preact", "htm", "uplot"}
