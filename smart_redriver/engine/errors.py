"""Every error that the re-driver raises on purpose, under one root, and the meaning of AWS's fault codes.

A lost race is not an error: the call that lost it returns ``None`` or ``False``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

#: Codes for a message that is itself at fault, so that no later attempt can succeed.
CONTENT_FAULTS = frozenset(
    {
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidAttributeValue",
        "InvalidAttributeName",
        # SQS on an empty body; all other required parameters are always sent.
        "MissingParameter",
        # Only of a call with one entry: calls with more are split first.
        "BatchRequestTooLong",
        # Lambda on an event that is not JSON, or too large.
        # https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors
        "InvalidRequestContentException",
        "RequestTooLargeException",
        "RequestEntityTooLargeException",
        "SerializedRequestEntityTooLargeException",
        # Firehose has none: a record can only be too large, which is seen before the call; its InvalidArgumentException
        # is about the stream.
        # https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecord.html#API_PutRecord_Errors
        # Step Functions on the input, and on a schedule's name for an execution: that name exists already.
        # https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html#API_StartExecution_Errors
        "InvalidExecutionInput",
        "InvalidName",
        "ExecutionAlreadyExists",
        "ValidationException",
        # SNS on a message. https://docs.aws.amazon.com/sns/latest/api/API_Publish.html#API_Publish_Errors
        "InvalidParameter",
        "ParameterValueInvalid",
        # Ours, on a letter that does not hold what its target needs, or is larger than the target accepts.
        "InvalidLetter",
        "LetterTooLarge",
    }
)

#: Faults that pass by themselves: AWS in trouble, a limit on calls, or no answer. Any other code but a content fault
#: is a refusal. Codes are botocore's, without what stands before the last dot ("KMS.ThrottlingException").
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html#API_SendMessageBatch_Errors
#: https://docs.aws.amazon.com/kms/latest/developerguide/throttling.html
TRANSIENT_FAULTS = frozenset(
    {
        # SQS has a problem.
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "RequestTimeout",
        "RequestTimeoutException",
        "500",
        "502",
        "503",
        "504",
        # Too many calls: SQS, and KMS for a queue with a key of its own.
        "RequestThrottled",
        "RequestThrottledException",
        "Throttled",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "KmsThrottled",
        "TooManyRequestsException",
        "SlowDown",
        # No answer, or no answer about this entry.
        "NoAnswer",
        "ReadTimeoutError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "ConnectionError",
        "EndpointConnectionError",
        "HTTPClientError",
        "ProxyConnectionError",
        "ResponseStreamingError",
        "SSLError",
        # A function that is being changed; its network is not ready; Lambda has a problem.
        "ServiceException",
        "ResourceConflictException",
        "ResourceNotReadyException",
        "EC2ThrottledException",
        "ENINotReadyException",
        # Limits of Step Functions, and KMS for SNS and Step Functions.
        "ExecutionLimitExceeded",
        "KMSThrottling",
        "KMSThrottlingException",
        "KmsThrottlingException",
        # Ours, on letters that were not delivered because the time for one delivery was over.
        "NotTried",
        # Databases: locked by others, too slow, starting or stopping, full for the moment.
        "LetterNotThere",
        "LockNotAvailable",
        "QueryCanceled",
        "DeadlockDetected",
        "SerializationFailure",
        "TooManyConnections",
        "OutOfMemory",
        "DiskFull",
        "ReadOnlySqlTransaction",
    }
)


#: Codes of calls for something that is not there, in any protocol.
GONE = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "NotFound",
        "NotFoundException",
        "UNKNOWN_TOPIC_OR_PART",
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
    }
)


#: A target's answers to any letter: the caller has no permission, or the target is gone or can't be reached.
TARGET_REFUSALS = GONE | frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "ExpiredTokenException",
        "NoCredentialsError",
        "StateMachineDoesNotExist",
        "StateMachineDeleting",
        "InvalidArn",
        "InvalidTopic",
        "InvalidArgumentException",
        "InvalidSourceException",
        "InvalidKMSResourceException",
        "KmsAccessDeniedException",
        "KMSAccessDenied",
        "KMSAccessDeniedException",
        "KMSDisabled",
        "KMSDisabledException",
        "KMSInvalidState",
        "KMSInvalidStateException",
        "KMSNotFound",
        "KMSNotFoundException",
        "KMSOptInRequired",
        # SQS, by its own names, and by KMS's.
        "KmsAccessDenied",
        "KmsDisabled",
        "KmsInvalidKeyUsage",
        "KmsInvalidState",
        "KmsNotFound",
        "KmsOptInRequired",
        "DisabledException",
        "InvalidStateException",
        "OptInRequired",
        "InvalidAddress",
        "InvalidSecurity",
        "UnsupportedOperation",
        # Ours, of web targets.
        "HostNotFound",
        "AddressNotPublic",
        "NoConnection",
        "CertificateInvalid",
    }
)


class RedriverError(Exception):
    """Root of the re-driver's own errors: catch this to catch them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with the configuration.

    ``seen`` is the given value, or None if a required value is missing.
    """

    setting: str
    seen: object
    accepted: str

    def __str__(self) -> str:
        seen = "not given" if self.seen is None else f"saw {self.seen!r}"
        return f"{self.setting}: {seen}, accepted is {self.accepted}"


class SettingsError(RedriverError):
    """Raised at synth or cold start when the configuration is wrong.

    Carries all ``faults``, so that a person can fix the configuration in one go.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        lines = [f"{len(self.faults)} fault(s) in the settings:", *map(str, self.faults)]
        super().__init__("\n  ".join(lines))


class CallFailed(RedriverError):  # noqa: N818 - reads as what happened, and is caught by that name
    """Raised when an AWS call gave no answer, or a denial, and the pass needs the answer.

    `call` is the operation ("ReceiveMessage"), `code` AWS's error code or botocore's exception name. `asked_for`: the
    thing that it was about ("queue orders"), if known. `left`: letters that could not be put back after it.
    """

    def __init__(self, call: str, code: str, detail: str = "") -> None:
        self.call = call
        self.code = code
        self.detail = detail
        self.asked_for = ""
        self.left: Sequence[EntryFault] = ()
        super().__init__(f"{call}: {code}: {detail}")

    @property
    def in_short(self) -> str:
        """The call and its code, for people."""
        return f"{self.call}: {self.code}"

    @property
    def absent(self) -> str:
        """What it asked for, if that does not exist; empty if it may, or if nobody knows what that was."""
        return self.asked_for if self.code in GONE else ""


class DatabaseLost(CallFailed):
    """Raised when there was no connection to a database, or it broke; the request may have been carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFault:
    """One entry of a batch call that AWS did not accept, or whose whole call failed.

    It is one of three kinds: of the content, transient, or a refusal. `is_of_target`: the letter's target itself, and
    not only a queue before it, accepts nothing now. Then the fault is not temporary, but shows how the target is.
    """

    call: str
    key: str
    code: str
    detail: str = ""
    is_of_target: bool = False

    @classmethod
    def of(cls, failed: CallFailed, key: str, *, is_of_target: bool = False) -> Self:
        """The fault of one entry in a call that failed as a whole."""
        return cls(
            call=failed.call,
            key=key,
            code=failed.code,
            detail=failed.detail,
            is_of_target=is_of_target,
        )

    @property
    def is_of_content(self) -> bool:
        """Whether the message itself is at fault, so that no later attempt can succeed."""
        return self.code in CONTENT_FAULTS

    @property
    def is_transient(self) -> bool:
        """Whether it passes by itself, so that it says nothing against the letter or its destination."""
        return self.code in TRANSIENT_FAULTS and not self.is_of_target

    @property
    def is_refusal(self) -> bool:
        """Whether the queue refuses the call: access, its key, or it is gone. Unknown codes count as refusals."""
        return not self.is_of_content and not self.is_transient
