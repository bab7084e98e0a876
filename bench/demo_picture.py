"""Draws the terminal of `make demo` while its backlog drains: `python -m bench.demo_picture [FILE]`.

The story is played on a deployed stack, as the demo does, and one moment of it is kept.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console, RenderableType

from demo.stack import deploy
from demo.story import DEPLOYED_WITH, Snapshot, Story
from demo.view import LiveView
from emulator import cdk
from emulator.process import LocalAws

PICTURE = Path("docs/images/demo.svg")

#: A minute in which the circuit has just closed and letters go back.
CHAPTER = "The backlog drains"
_COLUMNS = 110


class Camera:
    """Looks at the story as people do, and keeps the first picture of one chapter."""

    def __init__(self) -> None:
        self.picture: RenderableType | None = None
        self._is_time = False
        self._view = LiveView(self._keep)

    def show(self, seen: Snapshot) -> None:
        self._is_time = seen.chapter == CHAPTER
        self._view.show(seen)

    def _keep(self, picture: RenderableType) -> None:
        if self._is_time and self.picture is None:
            self.picture = picture


def main() -> None:
    """Play, and write the picture."""
    camera = Camera()
    with LocalAws() as aws:
        cdk.bootstrap(aws)
        Story(deploy(aws, **DEPLOYED_WITH), camera.show).play()
    if camera.picture is None:
        sys.exit(f"The story had no chapter {CHAPTER!r}.")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    path.write_text(as_svg(camera.picture))


def as_svg(picture: RenderableType) -> str:
    """The picture as a terminal shows it, in whatever monospaced font the reader has: nothing is fetched."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(picture)
    svg = console.export_svg(title="make demo")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()
