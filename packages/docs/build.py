"""Packs the pages for those who install and have no clone: `python packages/docs/build.py FOLDER`.

The same pages give the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from smart_redriver import __version__

_ROOT = Path(__file__).resolve().parents[2]
_NAME = f"smart-redriver-{__version__}-docs"
#: What the README shows first, and what its links lead to.
_PAGES = ("README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "docs", "examples")
#: What a tool leaves there.
_NOT_OURS = {"__pycache__", "node_modules", "cdk.out"}
#: The earliest time that a zip file can name.
_DATE = (1980, 1, 1, 0, 0, 0)


def build(folder: Path) -> Path:
    """Write the zip into `folder`; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{_NAME}.zip"
    with ZipFile(target, "w", ZIP_DEFLATED) as packed:
        for path in _files():
            info = ZipInfo(f"{_NAME}/{path.relative_to(_ROOT).as_posix()}", _DATE)
            info.external_attr = 0o644 << 16
            info.compress_type = ZIP_DEFLATED
            packed.writestr(info, path.read_bytes())
    return target


def _files() -> list[Path]:
    listed = [one for name in _PAGES for one in (_ROOT / name, *(_ROOT / name).rglob("*"))]
    return sorted(one for one in listed if one.is_file() and not _NOT_OURS & set(one.parts))


if __name__ == "__main__":
    made = build(Path(sys.argv[1]))
    sys.stdout.write(f"{made} {made.stat().st_size}\n")
