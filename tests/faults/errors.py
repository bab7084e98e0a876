"""What AWS may answer, taken from botocore's service models, and what may happen on the way to it."""

from __future__ import annotations

from functools import cache

from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.loaders import Loader
from botocore.model import ServiceModel

SERVICES = ("sqs", "dynamodb", "cloudwatch")

#: Errors that no operation's model lists, since every operation of the service has them.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
COMMON = (
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "IncompleteSignature",
    "InternalFailure",
    "InvalidClientTokenId",
    "OptInRequired",
    "RequestExpired",
    "ServiceUnavailable",
    "ThrottlingException",
    "ValidationError",
)

#: SQS keeps the codes of its older query protocol in `Code`; the modelled name is only in `QueryErrorCode`.
_QUERY_PREFIX = "AWS.SimpleQueueService."
_QUERY_CODES = {
    "QueueDoesNotExist": f"{_QUERY_PREFIX}NonExistentQueue",
    "KmsAccessDenied": "KMS.AccessDeniedException",
    "KmsDisabled": "KMS.DisabledException",
    "KmsInvalidKeyUsage": "KMS.InvalidKeyUsageException",
    "KmsInvalidState": "KMS.InvalidStateException",
    "KmsNotFound": "KMS.NotFoundException",
    "KmsOptInRequired": "KMS.OptInRequired",
    "KmsThrottled": "KMS.ThrottlingException",
} | {
    name: _QUERY_PREFIX + name
    for name in (
        "BatchEntryIdsNotDistinct",
        "BatchRequestTooLong",
        "EmptyBatchRequest",
        "InvalidBatchEntryId",
        "TooManyEntriesInBatchRequest",
        "UnsupportedOperation",
    )
}

_WAY = {"endpoint_url": "https://aws.invalid"}
_CAUSE = {"error": "as scripted"}

#: The request never reached AWS.
UNREACHED: tuple[Exception, ...] = (
    EndpointConnectionError(**_WAY, **_CAUSE),
    ConnectTimeoutError(**_WAY, **_CAUSE),
)

#: The answer never reached us: AWS may have acted, or not.
UNANSWERED: tuple[Exception, ...] = (
    ReadTimeoutError(**_WAY, **_CAUSE),
    ConnectionClosedError(**_WAY, **_CAUSE),
)


def answers(operation: str) -> list[ClientError]:
    """Every error that the operation documents, and the common ones."""
    return [refusal(operation, code) for code in dict.fromkeys((*documented(operation), *COMMON))]


def refusal(operation: str, code: str) -> ClientError:
    """One of AWS's errors, as boto3 raises it."""
    error = {"Code": code, "Message": "as scripted"}
    if _service_of(operation).service_name == "sqs":
        error |= {"Code": _QUERY_CODES.get(code, code), "QueryErrorCode": code}
    return ClientError({"Error": error}, operation)  # type: ignore[typeddict-item]  # plain dict


def documented(operation: str) -> list[str]:
    """The codes in the operation's service model."""
    model = _service_of(operation).operation_model(operation)
    return [shape.name for shape in model.error_shapes]


def code_of(error: Exception) -> str:
    """The code by which the report and the log name an error."""
    if isinstance(error, ClientError):
        return error.response["Error"]["Code"].rpartition(".")[2]
    return type(error).__name__


@cache
def _service_of(operation: str) -> ServiceModel:
    models = [
        ServiceModel(Loader().load_service_model(service, "service-2"), service)
        for service in SERVICES
    ]
    return next(model for model in models if operation in model.operation_names)
