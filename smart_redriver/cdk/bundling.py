"""Bundles a Lambda package with its locked dependencies, without Docker.

The same sources and lock file give the same bytes, and therefore the same asset hash, on every machine:
a deployment without a change changes nothing.
"""

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

#: A link to `requirements/lambda.lock`, which a wheel has as a file.
LOCK_FILE = Path(__file__).with_name("lambda.lock")
RUNTIME = lambda_.Runtime.PYTHON_3_14
ARCHITECTURE = lambda_.Architecture.ARM_64

_PYTHON_VERSION = "3.14"
#: The newest C library that a wheel may be built against. Lambda's is newer.
_PLATFORM = "aarch64-manylinux_2_28"

#: Files that installers and interpreters write: they contain paths and times, and the function reads none of them.
_NOISE = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", ".lock")
_LEFT_OUT = ("__pycache__", "*.py[co]", ".*")


#: The services that a function calls, by botocore's folder names. Botocore describes four hundred, which take 27 MB.
_SERVICES = (
    "cloudwatch", "dynamodb", "events", "firehose", "lambda", "logs", "rds",
    "secretsmanager", "sns", "sqs", "stepfunctions", "sts",
)  # fmt: skip
#: Folders with a folder for each service, and folders that no function uses, such as Powertools' page of an API.
_DESCRIBED = ("botocore/data", "boto3/data")
_UNSERVED = ("aws_lambda_powertools/event_handler/openapi/swagger_ui", "boto3/examples", "bin")

#: Files and folders by their place in a bundle.
Sources = Mapping[str, Path]
_NONE: Sources = MappingProxyType({})


class BundlingError(Exception):
    """Raised when a function's code can't be bundled. It says what to do."""


def package_code(
    scope: Construct,
    package: Path,
    beside: Sources = _NONE,
    place: str | None = None,
    lock_file: Path = LOCK_FILE,
) -> lambda_.Code:
    """Make a code asset of the package in folder ``package``, with a lock file's dependencies and ``beside`` beside it.

    The CDK treats two assets of one folder as the same, whatever their bundles: each function needs its own folder.

    The lock file pins boto3, because the runtime's own changes without a deployment. There is no bytecode: only the
    runtime's own Python could compile it, and another Python would make other bytes from the same sources. Raises
    BundlingError if uv is missing or can't install.
    """
    if cdk.Stack.of(scope).bundling_required:
        # Now, and not when the CDK asks for the bundle: there, an error comes wrapped in two tracebacks.
        install_dependencies(lock_file)
    return lambda_.Code.from_asset(
        str(package),
        # Matters if bundling is skipped: the hash is then that of the sources.
        exclude=["**/__pycache__", "**/*.py[co]", ".*", *_apart(lock_file)],
        asset_hash_type=cdk.AssetHashType.OUTPUT,
        bundling=cdk.BundlingOptions(
            image=RUNTIME.bundling_image,  # required by the type, never used
            local=_UvBundling({place or package.name: package, **beside}, lock_file),
        ),
    )


def _apart(lock_file: Path) -> list[str]:
    """A pattern that matches nothing, because the CDK distinguishes two bundles of one folder by their excludes."""
    return [] if lock_file == LOCK_FILE else [f"{lock_file.name}/*"]


def find_uv() -> str:
    """Path of the uv that is installed as a package of this Python, else of the one on the PATH.

    Raises BundlingError if there is none.
    """
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        if found := shutil.which("uv"):
            return found
    raise BundlingError(
        "uv is needed to bundle the function and was not found. Install it beside this Python "
        f"with: {sys.executable} -m pip install uv"
    )


def bundle(sources: Sources, output: Path, lock_file: Path | None = None) -> None:
    """Write these sources and the dependencies of a lock file into ``output``, an empty directory.

    Raises BundlingError with uv's own words if the dependencies can't be installed.
    """
    shutil.copytree(install_dependencies(lock_file or LOCK_FILE), output, dirs_exist_ok=True)
    ignore = shutil.ignore_patterns(*_LEFT_OUT)
    for place, source in sources.items():
        (output / place).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, output / place, ignore=ignore)
        else:
            shutil.copyfile(source, output / place)
    for path in output.rglob("*"):
        if path.name in _NOISE:
            path.unlink()
        else:
            # Lambda runs as another user, who must be able to read the files regardless of the umask here.
            path.chmod(0o755 if path.is_dir() else 0o644)


@functools.cache
def install_dependencies(lock_file: Path) -> Path:
    """Install the packages in ``lock_file``. Returns the directory that all functions copy from.

    Raises BundlingError with uv's own words if that fails.
    """
    output = Path(tempfile.mkdtemp(prefix="lambda-packages-"))
    atexit.register(shutil.rmtree, output, ignore_errors=True)
    command = [find_uv(), "pip", "install", "--quiet", "--target", str(output)]
    command += ["--requirements", str(lock_file), "--require-hashes", "--only-binary", ":all:"]
    command += ["--python-version", _PYTHON_VERSION, "--python-platform", _PLATFORM]
    command += ["--python", sys.executable, "--no-compile-bytecode"]
    # Copies, because the modes are changed, and a hard link would change them in uv's cache, too.
    command += ["--link-mode", "copy"]
    # No part of the command comes from outside.
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BundlingError(
            f"uv could not install {lock_file.name}, which the functions need:\n{done.stderr.strip()}"
        )
    _prune(output)
    return output


def _prune(installed: Path) -> None:
    """Remove what no function uses, such as console scripts, whose first line names this machine's Python."""
    unused = [installed / place for place in _UNSERVED]
    for place in _DESCRIBED:
        described = installed / place
        if described.is_dir():
            unused += [one for one in described.iterdir() if one.is_dir() and one.name not in _SERVICES]  # fmt: skip
    for folder in unused:
        shutil.rmtree(folder, ignore_errors=True)


@jsii.implements(cdk.ILocalBundling)
class _UvBundling:
    def __init__(self, sources: Sources, lock_file: Path) -> None:
        self._sources = sources
        self._lock_file = lock_file

    # jsii passes the options as keywords only to a method that names one of them.
    def try_bundle(self, output_dir: str, *, image: Any, **_: Any) -> bool:  # noqa: ARG002
        """Bundle or raise. Never return False, which would make the CDK turn to Docker."""
        bundle(self._sources, Path(output_dir), self._lock_file)
        return True
