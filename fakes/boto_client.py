"""Parts that every fake shares with a boto3 client: its errors, its exception classes, its paginators.

All three are built from botocore's own service models, so that `except ClientError`,
`except client.exceptions.QueueDoesNotExist` and `client.get_paginator(...)` meet the real types.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from botocore import xform_name
from botocore.errorfactory import ClientExceptionsFactory
from botocore.exceptions import ClientError
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.paginate import Paginator

Response = dict[str, Any]

Arguments = ParamSpec("Arguments")
Client = TypeVar("Client", bound="FakeClient")


class Fault(Exception):  # noqa: N818 - not yet an error: the client turns it into the ClientError
    """The service's answer instead of a result, before it is known which operation asked.

    `entry_code` replaces the code if only one entry of a batch has the fault.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        query_code: str | None = None,
        entry_code: str | None = None,
        **extra: object,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.query_code = query_code
        self.entry_code = entry_code or code
        self.extra = extra


class FakeClient:
    """Base of the fakes: one instance stands for one boto3 client of `service_name`."""

    def __init__(self, service_name: str) -> None:
        self._model = _service_model(service_name)
        self.exceptions = _client_exceptions(service_name)

    def get_paginator(self, operation_name: str) -> Any:
        """Botocore's own paginator over the fake's pages."""
        model = self._model.operation_model(_operation_name(self._model, operation_name))
        config = _paginators(self._model.service_name)[model.name]
        return Paginator(getattr(self, operation_name), config, model)

    def client_error(self, fault: Fault, operation_name: str) -> ClientError:
        """The exception that boto3 would raise for `fault`, of the modelled class if there is one."""
        error: dict[str, Any] = {"Code": fault.code, "Message": fault.message}
        if self._model.service_name == "sqs":
            # SQS speaks JSON now but keeps the error codes of its older query protocol: botocore
            # reports the old code as Code and the modelled name as QueryErrorCode.
            error |= {"Code": fault.query_code or fault.code, "QueryErrorCode": fault.code}
            error["Type"] = "Sender"
        response = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}, **fault.extra}
        error_class: type[ClientError] = self.exceptions.from_code(fault.code)
        return error_class(response, operation_name)  # type: ignore[arg-type]  # plain dict


def operation(
    method: Callable[Concatenate[Client, Arguments], Response],
) -> Callable[Concatenate[Client, Arguments], Response]:
    """Make a method an API operation: faults become ClientErrors, answers carry metadata."""

    @wraps(method)
    def call(self: Client, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Response:
        try:
            response = method(self, *args, **kwargs)
        except Fault as fault:
            name = _operation_name(self._model, method.__name__)
            raise self.client_error(fault, name) from None
        metadata = {"HTTPStatusCode": 200, "RetryAttempts": 0}
        response["ResponseMetadata"] = metadata | response.get("ResponseMetadata", {})
        return response

    return call


def _operation_name(model: ServiceModel, method_name: str) -> str:
    return next(name for name in model.operation_names if xform_name(name) == method_name)


@lru_cache
def _service_model(service_name: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(service_name, "service-2"), service_name)


@lru_cache
def _paginators(service_name: str) -> dict[str, Any]:
    pagination: dict[str, Any] = Loader().load_service_model(service_name, "paginators-1")
    return pagination["pagination"]  # type: ignore[no-any-return]  # JSON read by botocore


@lru_cache
def _client_exceptions(service_name: str) -> Any:
    return ClientExceptionsFactory().create_client_exceptions(_service_model(service_name))
