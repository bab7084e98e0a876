"""Rules of accessibility, by axe-core."""

from __future__ import annotations

from playwright.sync_api import Page

from emulator.environments import ROOT

_SOURCE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
_RUN = (
    "async () => (await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', "
    "'best-practice']}))"
)


def violations(page: Page) -> list[str]:
    """The rules that the page breaks as it is shown now, each with where."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_SOURCE.read_text(encoding="utf-8"))
    ran = page.evaluate(_RUN)
    assert len(ran["passes"]) > 10, "axe looked at nothing"
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes']]}"
        for one in ran["violations"]
    ]
