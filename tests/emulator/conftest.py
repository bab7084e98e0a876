"""One emulator for all tests of this folder; each test makes queues and functions of its own."""

import io
import itertools
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emulator.process import LocalAws

_ROLE = "arn:aws:iam::000000000000:role/emulator-test"
_names = (f"test-{number}" for number in itertools.count())


@pytest.fixture(scope="session")
def aws() -> Iterator[LocalAws]:
    with LocalAws() as local_aws:
        yield local_aws


@pytest.fixture(scope="session")
def sqs(aws: LocalAws) -> Any:
    return aws.client("sqs")


@pytest.fixture(scope="session")
def cloudwatch(aws: LocalAws) -> Any:
    return aws.client("cloudwatch")


@pytest.fixture(scope="session")
def functions(aws: LocalAws) -> Any:
    """The Lambda client."""
    return aws.client("lambda")


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return next(_names)


@pytest.fixture
def make_queue(sqs: Any) -> Iterator[Callable[..., str]]:
    """Make a queue with these attributes; its URL. Removed after the test."""
    urls: list[str] = []

    def make(**attributes: str) -> str:
        suffix = ".fifo" if "FifoQueue" in attributes else ""
        name = next(_names) + suffix
        url: str = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        urls.append(url)
        return url

    yield make
    for url in urls:
        sqs.delete_queue(QueueUrl=url)


@pytest.fixture
def make_function(functions: Any) -> Iterator[Callable[..., str]]:
    """Make a function from the source of its `handler(event, context)`; its name."""
    made: list[str] = []

    def make(source: str, **settings: Any) -> str:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as code:
            code.writestr("index.py", textwrap.dedent(source))
        function = next(_names)
        functions.create_function(
            FunctionName=function,
            Runtime="python3.13",
            Handler="index.handler",
            Role=_ROLE,
            Code={"ZipFile": archive.getvalue()},
            **{"Timeout": 30, **settings},
        )
        made.append(function)
        return function

    yield make
    for function in made:
        functions.delete_function(FunctionName=function)


@pytest.fixture
def arn_of(sqs: Any) -> Callable[[str], str]:
    """The ARN of the queue at a URL."""

    def arn(url: str) -> str:
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(attributes["Attributes"]["QueueArn"])

    return arn
