"""Why a consumer fails on a message: one error class per reason, as its reports and logs name it."""

# ruff: noqa: N818 - consumers name their errors as they like

from __future__ import annotations


class Failed(Exception):
    """The error that a consumer raises when it fails on a message."""


class DownstreamUnavailable(Failed):
    """The consumer is down: everything that it needs is gone."""

    def __init__(self) -> None:
        super().__init__("connection refused")


class PaymentDeclined(Failed):
    """A message needs a downstream that is down; other messages succeed."""

    def __init__(self) -> None:
        super().__init__("the payment provider does not answer")


class BadOrder(Failed):
    """The failure of a poison pill."""

    def __init__(self, body: str) -> None:
        super().__init__(f"an order without items: {body}")


class Flaked(Failed):
    """A failure by chance."""

    def __init__(self) -> None:
        super().__init__("timed out")


class Overloaded(Failed):
    """The failure of a message beyond the consumer's capacity."""

    def __init__(self) -> None:
        super().__init__("too many connections")


class Expired(Failed):
    """The failure of a message that is too old to be of use."""

    def __init__(self, body: str) -> None:
        super().__init__(f"the offer is no longer valid: {body}")


class Alike(Failed):
    """The failure of a consumer that names one cause for everything it fails on."""

    def __init__(self) -> None:
        super().__init__("the message could not be processed")
