"""Builds the consumer kit's wheel and its Lambda layer: `python packages/consumer/build.py FOLDER`.

The same sources give the same bytes, whenever and wherever they are built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_HERE = Path(__file__).resolve().parent
_KIT = _HERE.parents[1] / "smart_redriver" / "consumer"

#: Where Lambda looks for what a layer brings. https://docs.aws.amazon.com/lambda/latest/dg/packaging-layers.html
_IN_LAYER = "python"
#: The earliest time that a zip file can name: 1980-01-01.
_EPOCH = "315532800"
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644

_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def build(folder: Path) -> tuple[Path, Path]:
    """Write both into `folder`; their paths, the wheel's first. Raises CalledProcessError where setuptools fails."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        source, built = Path(place) / "source", Path(place) / "built"
        _copy_sources(source)
        built.mkdir()
        # Every word of the command is ours.
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", _BUILD, str(built)],
            cwd=source,
            env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH},
            umask=0o022,
            check=True,
            capture_output=True,
        )
        [wheel] = built.glob("*.whl")
        wheel = Path(shutil.copy(wheel, folder))
    name, version, *_ = wheel.name.split("-")
    layer = folder / f"{name.replace('_', '-')}-layer-{version}.zip"
    _write_layer(wheel, layer)
    return wheel, layer


def _copy_sources(source: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_KIT, source / "smart_redriver" / "consumer", ignore=ignore)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(_HERE / name, source)
    for path in source.rglob("*"):
        # A wheel keeps modes, which differ with the umask of whoever has checked the sources out.
        path.chmod(0o755 if path.is_dir() else _MODE)


def _write_layer(wheel: Path, layer: Path) -> None:
    with ZipFile(wheel) as packed, ZipFile(layer, "w") as made:
        for name in sorted(packed.namelist()):
            info = ZipInfo(f"{_IN_LAYER}/{name}", _DATE)
            info.external_attr = _MODE << 16
            info.compress_type = ZIP_DEFLATED
            made.writestr(info, packed.read(name))


if __name__ == "__main__":
    for path in build(Path(sys.argv[1])):
        sys.stdout.write(f"{path} {path.stat().st_size}\n")
