"""The AWS clients of one command: with the caller's credentials, opened at first use, and with every call counted.

Answers may be missing, because people ask for the status when things are wrong. The clients are botocore's, not
boto3's, which are the same but take twice as long to start.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from smart_redriver.engine.errors import CallFailed, RedriverError
from smart_redriver.oncall.terminal.exits import CHECK_PROXY, Misused, Refused

if TYPE_CHECKING:
    from botocore.session import Session


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer, or why there is none: `code` if a call failed, `absent` if what it asked for does not exist."""

    value: T | None = None
    fault: str | None = None
    code: str = ""
    absent: str = ""


def ask(question: Callable[[], T]) -> Answer[T]:
    """The answer to one question. A refusal is an answer, too."""
    try:
        return Answer(value=question())
    except CallFailed as failed:
        return Answer(fault=failed.in_short, code=failed.code, absent=failed.absent)
    except (Refused, RedriverError) as refused:
        return Answer(fault=str(refused))


class Asking:
    """Asks questions in parallel. Enter it, ask, then read the futures."""

    def __init__(self, width: int = 12) -> None:
        self._pool = ThreadPoolExecutor(width)

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def __call__(self, question: Callable[[], T]) -> Callable[[], Answer[T]]:
        """Begin to ask. Call the returned function to wait for the answer."""
        return self._pool.submit(ask, question).result


_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
#: Opens the client of one service, by botocore's name for it.
Connect = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Credentials, Region and endpoint of the caller; None leaves one to the caller's environment.

    For one of several homes, its profile's Region takes precedence over the environment's, which is the same for all.
    """

    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    is_home: bool = False


class Aws:
    """Clients by service, and the number of calls of each operation."""

    def __init__(self, connect: Connect) -> None:
        self.calls: Counter[str] = Counter()
        self._connect = connect
        self._clients: dict[str, _Counted] = {}
        self._lock = Lock()

    @cached_property
    def sqs(self) -> Any:
        return self.client("sqs")

    @cached_property
    def dynamodb(self) -> Any:
        return self.client("dynamodb")

    def client(self, service: str) -> Any:
        """The client of a service. Its calls raise only CallFailed. Raises CallFailed."""
        with self._lock:
            if service not in self._clients:
                from smart_redriver.engine.aws.clients import naming

                with naming(f"connecting to {service}"):
                    self._clients[service] = _Counted(self._connect(service), self)
            return self._clients[service]

    def counting_anew(self) -> Aws:
        """The same clients with a count of calls of their own."""
        return Aws(lambda service: self.client(service).bare)

    def logged_in_anew(self) -> Aws:
        """Clients that look for credentials again: a person whose login had expired may have logged in since."""
        again = getattr(self._connect, "again", None)
        return Aws(again() if again else self._connect)

    def elsewhere(self, home: str) -> Aws:
        """Clients for another home, named by profile, /Region or both. Raises Misused if they can't go there."""
        go = getattr(self._connect, "elsewhere", None)
        if go is None:
            raise Misused("There is no other home from here.")
        return Aws(go(home))

    def credentials(self) -> Any:
        """The caller's credentials; None if there are none."""
        look = getattr(self._connect, "credentials", None)
        return look() if look else None

    def beside_no_file(self) -> Aws:
        """The same account, whatever state the file of `--stack` names."""
        return Aws(getattr(self._connect, "connect", self._connect))

    @property
    def region(self) -> str | None:
        """The Region that the clients call; None before there is a client."""
        for client in self._clients.values():
            return client.region
        return None

    def count(self, operation: str) -> None:
        """Note one call."""
        with self._lock:
            self.calls[operation] += 1


#: The parameters of requests that name a thing, and its kind.
_KINDS = {
    "QueueUrl": "queue",
    "QueueName": "queue",
    "TableName": "state table",
    "RequestItems": "state table",
    "FunctionName": "function",
    "TopicArn": "topic",
    "logGroupName": "log group",
    "SecretId": "secret",
}


def _asked_for(request: Mapping[str, Any]) -> str:
    """The kind and name of what a request is about; empty for anything else."""
    for parameter, kind in _KINDS.items():
        if parameter in request:
            told = request[parameter]
            name = str(told if isinstance(told, str) else next(iter(told), ""))
            by = {"http": "/", "arn:": ":"}.get(name[:4])
            return f"{kind} {name.rpartition(by)[2] if by else name}"
    return ""


class _Counted:
    """A client whose calls are counted, and whose errors carry the name of their call."""

    def __init__(self, client: Any, aws: Aws) -> None:
        self.bare = client
        self._aws = aws

    @property
    def region(self) -> str | None:
        meta = getattr(self.bare, "meta", None)
        return getattr(meta, "region_name", None)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        from botocore.parsers import ResponseParserError

        from smart_redriver.engine.aws.clients import naming
        from smart_redriver.engine.errors import CallFailed

        act = getattr(self.bare, method)
        operation = "".join(word.capitalize() for word in method.split("_"))

        def call(**request: Any) -> Any:
            self._aws.count(operation)
            try:
                with naming(operation):
                    return act(**request)
            except CallFailed as failed:
                failed.asked_for = _asked_for(request)
                raise
            except (ResponseParserError, LookupError) as fault:  # something other than AWS answers
                raise CallFailed(operation, ResponseParserError.__name__, str(fault)) from fault

        return call


def connect_as(caller: Caller) -> Connect:
    """Clients with the caller's credentials. A fault in those is raised at first use."""
    return _Connecting(caller)


@dataclass
class _Connecting:
    """Opens clients with the credentials that were found for the first one."""

    caller: Caller

    @cached_property
    def _session(self) -> Session:
        import botocore.session

        return botocore.session.Session(profile=self.caller.profile)

    def credentials(self) -> Any:
        """Botocore's credentials; None if there are none."""
        return self._session.get_credentials()

    def again(self) -> _Connecting:
        """The same, but looks for credentials again."""
        return _Connecting(self.caller)

    def elsewhere(self, home: str) -> _Connecting:
        """The same for PROFILE, PROFILE/REGION or /REGION. A part that the home's name does not have stays the same."""
        profile, _, region = home.rpartition("/")
        if not _REGION.fullmatch(region):  # a profile's own name may have slashes in it
            profile, region = home, ""
        if not profile and not region:
            raise Misused(f"{home!r} is not a home. Write PROFILE, PROFILE/REGION or /REGION.")
        caller = Caller(
            profile=profile or self.caller.profile,
            region=region or (None if profile else self.caller.region),
            endpoint_url=self.caller.endpoint_url,
            is_home=True,
        )
        return _Connecting(caller)

    @property
    def _region(self) -> str | None:
        """Also look at AWS_REGION: unlike everything else by AWS, botocore itself reads only AWS_DEFAULT_REGION."""
        own = self._session.get_scoped_config().get("region") if self.caller.is_home else None
        return self.caller.region or own or os.environ.get("AWS_REGION") or None

    def __call__(self, service: str) -> Any:
        from botocore.config import Config
        from botocore.exceptions import InvalidRegionError

        config = Config(
            connect_timeout=3,
            # `run` waits for a whole pass. Everything else answers within a second or is asked again.
            read_timeout=300 if service == "lambda" else 10,
            retries={
                "mode": "standard",
                # A slow answer must not start another pass.
                "total_max_attempts": 1 if service == "lambda" else 3,
            },
            max_pool_connections=32,
        )
        try:
            client = self._session.create_client(
                service,
                region_name=self._region,
                endpoint_url=self.caller.endpoint_url,
                config=config,
            )
            _ = urlsplit(client.meta.endpoint_url).port  # botocore would read it at the first call
        except InvalidRegionError as fault:
            raise Misused(
                f"{self._region!r} is not a Region. Name one with --region, for example eu-west-1."
            ) from fault
        except ValueError as fault:  # its words may have a password in them
            raise Misused(
                "The endpoint is not a URL. Check --endpoint-url and AWS_ENDPOINT_URL."
            ) from fault
        _check_proxy(client.meta.endpoint_url)
        return client


def _check_proxy(endpoint_url: str) -> None:
    """Raise Misused if the proxy to the endpoint is not a URL: botocore's error would quote a part of its password."""
    from botocore.httpsession import ProxyConfiguration
    from botocore.utils import get_environ_proxies

    proxy = ProxyConfiguration(get_environ_proxies(endpoint_url)).proxy_url_for(endpoint_url)
    try:
        _ = urlsplit(proxy or "").port
    except ValueError as fault:
        raise Misused(f"The proxy is not a URL. {CHECK_PROXY}") from fault
