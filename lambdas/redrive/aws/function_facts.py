"""How long a function takes to fail on an asynchronous invocation: its time-out, and how often Lambda tries."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import Any

from redrive.aws.calls import naming
from redrive.errors import CallFailed

#: What holds where Lambda does not say: the longest time-out there is, and the retries of a function with none set.
#: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
LONGEST_TIMEOUT = timedelta(seconds=900)
USUAL_RETRIES = 2

#: Lambda waits so long before the second try, and before the third. Same page.
WAITS = (timedelta(minutes=1), timedelta(minutes=2))


class FunctionFacts:
    """What Lambda says of one function, asked once. Who can't be asked is taken to be as slow as can be."""

    def __init__(self, lambdas: Any, function_arn: str) -> None:
        self._lambdas = lambdas
        self._arn = function_arn

    def timeout(self) -> timedelta:
        """Of one try."""
        return self._timeout

    def tries(self) -> int:
        """Of one invocation, the first one included."""
        return 1 + self._retries

    def time_to_fail(self) -> timedelta:
        """From the invocation to the end of the last try, where none waits for capacity."""
        return self.timeout() * self.tries() + sum(WAITS[: self._retries], timedelta())

    @cached_property
    def _timeout(self) -> timedelta:
        try:
            with naming("GetFunctionConfiguration"):
                answer = self._lambdas.get_function_configuration(FunctionName=self._arn)
        except CallFailed:
            return LONGEST_TIMEOUT
        return timedelta(seconds=int(answer.get("Timeout", LONGEST_TIMEOUT.total_seconds())))

    @cached_property
    def _retries(self) -> int:
        try:
            with naming("GetFunctionEventInvokeConfig"):
                answer = self._lambdas.get_function_event_invoke_config(FunctionName=self._arn)
        except CallFailed:  # as a rule because there is none: ResourceNotFoundException
            return USUAL_RETRIES
        return min(int(answer.get("MaximumRetryAttempts", USUAL_RETRIES)), len(WAITS))
