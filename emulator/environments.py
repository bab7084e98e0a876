"""The variables of the two sides: of MiniStack with its functions, and of those who call it."""

import os
import sys
from pathlib import Path

from .driving import CLOCK_FILE, CONTROL_FILE

#: In a work directory: where functions that sleep say so, see `overlay.sleepers`.
ASLEEP_FOLDER = Path("tmp") / "asleep"

REGION = "us-east-1"
ACCOUNT = "000000000000"
ROOT = Path(__file__).resolve().parent.parent


def certificate(work_dir: Path) -> Path:
    """The certificate that MiniStack makes for itself when it speaks TLS."""
    return work_dir / "tmp" / "ministack-tls" / "server.crt"


def for_callers(endpoint_url: str, trusted: Path | None) -> dict[str, str]:
    """Ours, without our own AWS account and with the project's Node, CDK and Python first."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    tools = [str(ROOT / "node_modules" / ".bin"), str(Path(sys.executable).parent)]
    variables = inherited | {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": REGION,
        "PATH": os.pathsep.join([*tools, os.environ.get("PATH", os.defpath)]),
        "PYTHON": sys.executable,
    }
    if trusted:
        names = ("AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
        variables |= dict.fromkeys(names, str(trusted))
    return variables


def for_ministack(work_dir: Path, port: int) -> dict[str, str]:
    """Only what MiniStack needs: the functions that it runs inherit all of it."""
    kept = ("PATH", "HOME", "LANG")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "TMPDIR": str(work_dir / "tmp"),  # MiniStack leaves its workers' folders behind
        "PYTHONPATH": str(ROOT / "emulator" / "site"),
        "LOCAL_AWS_CLOCK": str(work_dir / CLOCK_FILE),
        "LOCAL_AWS_CONTROL": str(work_dir / CONTROL_FILE),
        "LOCAL_AWS_ASLEEP": str(work_dir / ASLEEP_FOLDER),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
    }
