"""Bundles a Lambda package with its locked dependencies, without Docker.

The same sources and lock file give the same bytes, hence the same asset hash on every machine: a
deployment without a change changes nothing.
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
#: The newest C library that a wheel may be built against; Lambda's is newer still.
_PLATFORM = "aarch64-manylinux_2_28"

#: Notes of installers and interpreters: they name paths and times, and the function reads none.
_NOISE = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", ".lock")
_LEFT_OUT = ("__pycache__", "*.py[co]", ".*")


#: The services that a function calls, by botocore's names of their folders; botocore describes four hundred, of 27 MB.
_SERVICES = (
    "cloudwatch", "dynamodb", "events", "firehose", "lambda", "logs", "rds",
    "secretsmanager", "sns", "sqs", "stepfunctions", "sts",
)  # fmt: skip
#: Folders that describe services, in a folder for each, and those that no function uses, as Powertools' page of an API.
_DESCRIBED = ("botocore/data", "boto3/data")
_UNSERVED = ("aws_lambda_powertools/event_handler/openapi/swagger_ui", "boto3/examples", "bin")

#: Files and folders by where they are to be in a bundle.
Sources = Mapping[str, Path]
_NONE: Sources = MappingProxyType({})


class BundlingError(Exception):
    """Raised when a function's code can't be put together; says what to do about it."""


def package_code(
    scope: Construct,
    package: Path,
    beside: Sources = _NONE,
    place: str | None = None,
    lock_file: Path = LOCK_FILE,
) -> lambda_.Code:
    """Code asset of the package in the folder ``package``, with the dependencies of a lock file and ``beside`` next to
    it.

    The CDK takes two assets of one folder for the same, whatever is bundled: each function needs a folder of its own.

    boto3 is in it, as the lock file says: the runtime's own changes without a deployment. Bytecode is not:
    only the runtime's own Python could compile it, and the same sources would give other bytes on a machine with
    another. Raises BundlingError if uv is missing or can't install.
    """
    if cdk.Stack.of(scope).bundling_required:
        # Now, not when the CDK asks for the bundle: an error there comes wrapped in two tracebacks.
        install_dependencies(lock_file)
    return lambda_.Code.from_asset(
        str(package),
        # Counts where bundling is skipped, and the hash is then that of the sources.
        exclude=["**/__pycache__", "**/*.py[co]", ".*", *_apart(lock_file)],
        asset_hash_type=cdk.AssetHashType.OUTPUT,
        bundling=cdk.BundlingOptions(
            image=RUNTIME.bundling_image,  # required by the type, never used
            local=_UvBundling({place or package.name: package, **beside}, lock_file),
        ),
    )


def _apart(lock_file: Path) -> list[str]:
    """A pattern that matches nothing: by what it leaves out the CDK tells two bundles of one folder apart."""
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
            # Lambda runs as another user, who must be able to read whatever the umask here was.
            path.chmod(0o755 if path.is_dir() else 0o644)


@functools.cache
def install_dependencies(lock_file: Path) -> Path:
    """Install what ``lock_file`` names; the directory, which all functions copy from.

    Raises BundlingError with uv's own words if that fails.
    """
    output = Path(tempfile.mkdtemp(prefix="lambda-packages-"))
    atexit.register(shutil.rmtree, output, ignore_errors=True)
    command = [find_uv(), "pip", "install", "--quiet", "--target", str(output)]
    command += ["--requirements", str(lock_file), "--require-hashes", "--only-binary", ":all:"]
    command += ["--python-version", _PYTHON_VERSION, "--python-platform", _PLATFORM]
    command += ["--python", sys.executable, "--no-compile-bytecode"]
    # Copies, as the modes are changed and a hard link would change them in uv's cache, too.
    command += ["--link-mode", "copy"]
    # Every word of the command is ours.
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BundlingError(
            f"uv could not install {lock_file.name}, which the functions need:\n{done.stderr.strip()}"
        )
    _prune(output)
    return output


def _prune(installed: Path) -> None:
    """Take away what no function uses. Console scripts are of that,
    and their first line names this machine's Python.
    """
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
        """Bundle or raise; never False, which would make the CDK turn to Docker."""
        bundle(self._sources, Path(output_dir), self._lock_file)
        return True
