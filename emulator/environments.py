"""The environment variables of the two sides: of MiniStack and its functions, and of their callers."""

import os
import shlex
import sys
from pathlib import Path

from .driving import CLOCK_FILE, CONTROL_FILE

#: In a work directory: where sleeping functions announce it, see `overlay.sleepers`.
ASLEEP_FOLDER = Path("tmp") / "asleep"
#: In a work directory: what functions' environments have compiled.
BYTECODE_FOLDER = Path("tmp") / "bytecode"

#: In a work directory: the variables for a person's shell.
SHELL_FILE = "environment.sh"

REGION = "us-east-1"
ACCOUNT = "000000000000"
ROOT = Path(__file__).resolve().parent.parent


def certificate(work_dir: Path) -> Path:
    """The certificate that MiniStack creates for itself when it uses TLS."""
    return work_dir / "tmp" / "ministack-tls" / "server.crt"


def for_callers(endpoint_url: str, trusted: Path | None) -> dict[str, str]:
    """Our own variables, without our AWS account and with the project's Node, CDK and Python first."""
    strange = (
        "AWS_",
        "LOCAL_AWS_",
    )  # of an account, or of another local AWS whose file was sourced
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(strange)}
    return (
        inherited
        | _access(endpoint_url, trusted)
        | {
            "CDK_DEFAULT_ACCOUNT": ACCOUNT,
            "CDK_DEFAULT_REGION": REGION,
            "PATH": os.pathsep.join([*_tools(), os.environ.get("PATH", os.defpath)]),
            "PYTHON": sys.executable,
        }
    )


def for_a_shell(endpoint_url: str, trusted: Path | None, work_dir: Path) -> str:
    """Lines for a shell to source, once or again: `redrive` and any AWS tool in it then see this AWS and its time."""
    variables = _access(endpoint_url, trusted) | {"LOCAL_AWS_CLOCK": str(work_dir / CLOCK_FILE)}
    first = {
        "PATH": os.pathsep.join(_tools()),
        "PYTHONPATH": str(ROOT / "emulator" / "site"),
    }
    return "".join(
        [
            *(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()),
            *(
                f'export {name}={shlex.quote(value)}"${{{name}:+:${name}}}"\n'
                for name, value in first.items()
            ),
        ]
    )


def _access(endpoint_url: str, trusted: Path | None) -> dict[str, str]:
    names = ("AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE") if trusted else ()
    return {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    } | dict.fromkeys(names, str(trusted))


def _tools() -> list[str]:
    return [str(ROOT / "node_modules" / ".bin"), str(Path(sys.executable).parent)]


def for_ministack(work_dir: Path, port: int) -> dict[str, str]:
    """Only what MiniStack needs: the functions that it runs inherit everything."""
    kept = ("PATH", "HOME", "LANG")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "TMPDIR": str(work_dir / "tmp"),  # MiniStack does not remove its workers' folders
        "PYTHONPATH": str(ROOT / "emulator" / "site"),
        "LOCAL_AWS_CLOCK": str(work_dir / CLOCK_FILE),
        "LOCAL_AWS_CONTROL": str(work_dir / CONTROL_FILE),
        "LOCAL_AWS_ASLEEP": str(work_dir / ASLEEP_FOLDER),
        "LOCAL_AWS_BYTECODE": str(work_dir / BYTECODE_FOLDER),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
    }
