"""Builds wheel, sdist and the list of what the function bundles: `python packages/python/build.py FOLDER`.

The same sources give the same bytes. The list is an SBOM in CycloneDX's JSON, of what `requirements/lambda.lock` pins.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from smart_redriver import __version__

_ROOT = Path(__file__).resolve().parents[2]
#: All that a wheel is made of; nothing that was built here before gets into it.
_SOURCES = (
    "smart_redriver", "lambdas/redrive", "requirements", "pyproject.toml", "README.md", "LICENSE",
)  # fmt: skip
#: The earliest time that a zip file can name: 1980-01-01.
_EPOCH = 315532800
#: setuptools changes `sys.argv`.
_BUILD = "import sys; from setuptools import build_meta as b; to = sys.argv[1]; b.build_wheel(to); b.build_sdist(to)"


def build(folder: Path) -> list[Path]:
    """Write all three into `folder`; their paths. Raises CalledProcessError where setuptools fails."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        source, built = Path(place) / "source", Path(place) / "built"
        copy_sources(source)
        built.mkdir()
        # Every word of the command is ours.
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", _BUILD, str(built)],
            cwd=source,
            env={**os.environ, "SOURCE_DATE_EPOCH": str(_EPOCH)},
            umask=0o022,
            check=True,
            capture_output=True,
        )
        [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
        bill = f"smart-redriver-{__version__}.cdx.json"
        made = [folder / name for name in (wheel.name, sdist.name, bill)]
        shutil.copyfile(wheel, made[0])
        made[1].write_bytes(_without_times(sdist))
        made[2].write_text(json.dumps(_bill_of_materials(), indent=1) + "\n")
    return made


def copy_sources(source: Path) -> None:
    """Copy what the package is made of; links become what they are to."""
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in _SOURCES:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (_ROOT / name).is_dir():
            shutil.copytree(_ROOT / name, target, ignore=leave)
        else:
            shutil.copy(_ROOT / name, target)
    for path in source.rglob("*"):
        # Both keep modes, which differ with the umask of whoever has checked the sources out.
        path.chmod(0o755 if path.is_dir() else 0o644)


def _without_times(sdist: Path) -> bytes:
    """The sdist without the times and names that setuptools writes into it."""
    plain = io.BytesIO()
    with tarfile.open(sdist) as given, tarfile.open(fileobj=plain, mode="w") as made:
        for one in sorted(given.getmembers(), key=lambda member: member.name):
            one.mtime, one.uid, one.gid, one.uname, one.gname = _EPOCH, 0, 0, "", ""
            one.pax_headers = {}
            made.addfile(one, given.extractfile(one) if one.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=0)


def _bill_of_materials() -> dict[str, Any]:
    """https://cyclonedx.org/docs/1.6/json/."""
    lock = (_ROOT / "requirements" / "lambda.lock").read_text().replace("\\\n", " ")
    ours = f"pkg:pypi/smart-redriver@{__version__}"
    parts = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            # One file of these is installed; which one, the platform says.
            "properties": [
                {"name": "smart-redriver:sha256", "value": one}
                for one in re.findall(r"sha256:([0-9a-f]{64})", hashes)
            ],
        }
        for name, version, hashes in re.findall(r"^([a-z0-9-]+)==(\S+)(.*)$", lock, re.MULTILINE)
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "smart-redriver",
                "version": __version__,
                "purl": ours,
                "licenses": [{"license": {"id": "MIT-0"}}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": ours, "dependsOn": [one["bom-ref"] for one in parts]}],
    }


if __name__ == "__main__":
    for path in build(Path(sys.argv[1])):
        sys.stdout.write(f"{path} {path.stat().st_size}\n")
