"""How a command ends: its exit codes, the refusal that ends it early, and one sentence for each failure.

The sentence says what to do next. No traceback reaches a person's screen.
"""

from __future__ import annotations

import traceback
from enum import IntEnum
from pathlib import Path

from smart_redriver.engine.errors import CallFailed, DatabaseLost, RedriverError

#: The most characters of a reason that a person gives. It is kept with the circuit, which every pass reads.
LONGEST_REASON = 500


class Exit(IntEnum):
    """Exit codes, as docs/command.md promises them."""

    DONE = 0
    REFUSED = 1  # refused, declined or failed; nothing was changed, or the output says what was
    USAGE = 2
    PARTLY = 3  # some of it was done; running it again goes on


class Refused(Exception):  # noqa: N818 - it is what happened, and is caught by that name
    """Raised to end a command with one sentence that says what is wrong and what to do next."""

    def __init__(self, message: str, code: Exit = Exit.REFUSED) -> None:
        self.code = code
        super().__init__(message)


class Misused(Refused):
    """Raised when the command's arguments make no sense together."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)


_NO_CREDENTIALS = (
    "No AWS credentials were found. Log in (for example `aws sso login`), "
    "or name a profile with --profile."
)
_UNREACHABLE = "AWS could not be reached. Check your network, --region and --endpoint-url."
#: A user name or password ends at the first of these characters.
CHECK_PROXY = "Check HTTPS_PROXY and HTTP_PROXY: in a user name or password, / is %2F, # is %23, ? is %3F and @ is %40."

_ADVICE = {
    "NoCredentialsError": _NO_CREDENTIALS,
    "PartialCredentialsError": _NO_CREDENTIALS,
    "CredentialRetrievalError": _NO_CREDENTIALS,
    "TokenRetrievalError": _NO_CREDENTIALS,
    "SSOTokenLoadError": _NO_CREDENTIALS,
    "UnauthorizedSSOTokenError": _NO_CREDENTIALS,
    "ProfileNotFound": "That profile does not exist. `aws configure list-profiles` shows which do.",
    "NoRegionError": "No region is set. Name one with --region, or set AWS_REGION.",
    "InvalidRegionError": "That is not a Region. Name one with --region, for example eu-west-1.",
    "EndpointConnectionError": _UNREACHABLE,
    "ConnectTimeoutError": _UNREACHABLE,
    "ConnectionClosedError": _UNREACHABLE,
    "ProxyConnectionError": f"The proxy could not be reached. {CHECK_PROXY}",
    "ResponseParserError": "The endpoint is not AWS. Check --endpoint-url and AWS_ENDPOINT_URL.",
    "ReadTimeoutError": "AWS did not answer in time; what was asked may have been done. Look with `redrive status`.",
    "InvalidClientTokenId": "AWS does not know these credentials. Log in again, or name another --profile.",
    "UnrecognizedClientException": "AWS does not know these credentials. Log in again, or name another --profile.",
    "ExpiredToken": "These credentials have expired. Log in again.",
    "ExpiredTokenException": "These credentials have expired. Log in again.",
    "UnreadableCircuit": "The circuit's item in the state table was damaged, or written by a version "
    "that this one does not know. "
    "Deploy that "
    "version, or delete the item (docs/deploy.md, Rollback): without it the next pass starts with a new circuit. "
    "Until then letters stay in the DLQ.",
    "UnreadableEntry": "A letter's item in the state table was damaged, or written by a version "
    "that this one does not know. Deploy "
    "that version, or "
    "delete the item (docs/deploy.md, Rollback): its letter is then known by its metadata alone. Until then no letter "
    "of the queue goes.",
    "UnprocessedKeys": "DynamoDB is throttling. Run it again in a moment.",
    "UnprocessedItems": "DynamoDB is throttling. Run it again in a moment.",
}

UNCHANGED = "Nothing was changed."
#: The remedy for anything that was deleted: a deployment without changes does not look whether it is still there.
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/drift-aware-change-sets.html
RESTORE = (
    "Make it again under the same name, or by `cdk deploy --revert-drift` if the stack made it: an ordinary deployment "
    "does not notice that it is gone. Then run `redrive doctor`."
)

_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"}
)
_THROTTLED = frozenset(
    {
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "TooManyRequestsException",
    }
)


def explain(fault: Exception, *, is_unchanged: bool = False) -> tuple[str, Exit]:
    """Explain the fault that ended a command, with the exit code.

    `is_unchanged`: it was to change something, and ended before it did.
    """
    if isinstance(fault, Refused):
        return str(fault), fault.code
    if isinstance(fault, CallFailed):
        before = f"{UNCHANGED} " if is_unchanged and fault.absent else ""
        return f"{before}{advice(fault)}", Exit.REFUSED
    if isinstance(fault, RedriverError):
        return f"{fault}. Deploy the stack anew.", Exit.REFUSED
    if isinstance(fault, OSError):
        of = f" ({fault.filename})" if fault.filename else ""
        return (
            f"This machine refused: {fault.strerror or fault}{of}. What was done stays done; fix this and run it "
            "again.",
            Exit.REFUSED,
        )
    where = traceback.extract_tb(fault.__traceback__)[-1]
    return (
        f"This is a bug: {type(fault).__name__}: {fault} ({Path(where.filename).name}:{where.lineno}). "
        "What was done stays done; report it with this line.",
        Exit.REFUSED,
    )


def advice(failed: CallFailed) -> str:
    """One paragraph for a person: what failed, and what to do next."""
    if isinstance(failed, DatabaseLost):
        return (
            f"The database was lost while it was asked ({failed.call}: {failed.detail or failed.code}). What was "
            "done stays done, and each row is moved whole or not at all: run it again once the database is back."
        )
    if failed.code in _DENIED:
        return (
            f"You may not call {failed.call} ({failed.code}). Looking needs the managed policy RedriveViewer, "
            "changing RedriveOperator (docs/command.md says how to deploy them)."
        )
    if failed.code in _THROTTLED:
        return (
            f"AWS is throttling {failed.call}. Run it again in a moment; what was done stays done."
        )
    if failed.absent:
        return f"The {failed.absent} does not exist. {RESTORE}"
    known = _ADVICE.get(failed.code)
    if known is not None:
        return known
    return (
        f"{failed.call} failed: {failed.code}: {failed.detail or 'no details'}. "
        "Run `redrive doctor`; what was done so far stays done, and running it again goes on."
    )
