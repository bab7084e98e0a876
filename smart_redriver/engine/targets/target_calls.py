"""The calls that give letters to targets: one class for each kind of target in AWS.

Each class has `deliver`, which returns a result for every letter. If AWS has no batch call, letters go one by one. Size
limits are AWS's own: a larger letter is at fault without a call. Values of parameters are never logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.aws.sqs import SqsQueue
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.errors import (
    CONTENT_FAULTS,
    TARGET_REFUSALS,
    TRANSIENT_FAULTS,
    CallFailed,
    EntryFault,
)
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.messages.redelivery import (
    event_for_function,
    execution_of,
    message_for_queue,
    publication_of,
    record_for_stream,
)

#: Gives one letter to its target, and returns the accepted delivery's id. Raises CallFailed, `Bounced`, and ValueError
#: for a letter that does not hold what the target needs.
Give = Callable[[Outgoing], str]

#: No further letter is begun this long after the first: a slow target must not use up the pass.
LONGEST_ROUND = timedelta(seconds=10)

#: The code of letters that were not begun any more.
NOT_TRIED = "NotTried"


class Bounced(Exception):  # noqa: N818 - reads as what happened
    """The target took a letter and answered with a failure, or not at all: either may be at fault."""


class TooLarge(ValueError):  # noqa: N818
    """The payload of a letter is larger than its target accepts."""


def check_size(payload: bytes, most: int) -> bytes:
    """The payload. Raises TooLarge."""
    if len(payload) > most:
        raise TooLarge(f"{len(payload)} bytes, of which {most} are taken")
    return payload


def deliver_one_by_one(
    call: str,
    outgoing: Sequence[Outgoing],
    give: Give,
    clock: Callable[[], float] = time.monotonic,
) -> Sent:
    """Give letters one by one; the answer includes each: accepted, bounced, or with a fault.

    An answer that the target would give to any letter ends it: the others are not tried. An unknown answer may be the
    letter's fault or the target's: it is a bounce.
    """
    sent = Sent()
    until = clock() + LONGEST_ROUND.total_seconds()
    for place, one in enumerate(outgoing):
        if clock() > until:
            sent.faults += _same_for(outgoing[place:], CallFailed(call, NOT_TRIED))
            break
        key = one.letter.message_id
        try:
            sent.new_ids[key] = give(one)
        except Bounced as answer:
            sent.bounced[key] = str(answer)
        except ValueError as fault:
            code = "LetterTooLarge" if isinstance(fault, TooLarge) else "InvalidLetter"
            sent.faults.append(EntryFault(call=call, key=key, code=code, detail=str(fault)))
        except CallFailed as failed:
            if failed.code in TARGET_REFUSALS or failed.code in TRANSIENT_FAULTS:
                sent.faults += _same_for(outgoing[place:], failed)
                break
            if failed.code in CONTENT_FAULTS:
                sent.faults += _same_for([one], failed)
            else:
                sent.bounced[key] = failed.code
    return sent


def _same_for(outgoing: Sequence[Outgoing], failed: CallFailed) -> list[EntryFault]:
    return [
        EntryFault.of(
            failed,
            one.letter.message_id,
            is_of_target=failed.code not in (NOT_TRIED, *CONTENT_FAULTS),
        )
        for one in outgoing
    ]


#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MOST_OF_AN_EVENT = 1_048_576
#: https://docs.aws.amazon.com/firehose/latest/dev/limits.html
MOST_OF_A_RECORD = 1_024_000
#: https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
MOST_OF_AN_INPUT = 262_144
#: https://docs.aws.amazon.com/general/latest/gr/sns.html
MOST_OF_A_PUBLICATION = 262_144

#: The beginning of SNS's answer to an ARN that is not a topic's.
_NO_TOPIC = "Invalid parameter: TopicArn"

#: The code that answers a repeated start.
_STARTED_ALREADY = "ExecutionAlreadyExists"


class QueueTarget:
    """A queue that SNS, a rule or a schedule sends to."""

    def __init__(self, sqs: Any, target: Target, origin: Origin) -> None:
        self._sqs = sqs
        self._target = target
        self._origin = origin
        self._queue: SqsQueue | None = None

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send messages as the origin sent them, see `SqsQueue.send`; without the metadata, which they never carried.

        An unknown answer is a bounce: otherwise, a letter that causes it would be every trial's canary.
        """
        sent, messages = Sent(), []
        for one in outgoing:
            try:
                messages.append(_bare(one, message_for_queue(one.letter, self._origin)))
            except ValueError as fault:
                key = one.letter.message_id
                sent.faults.append(
                    EntryFault(call="SendMessage", key=key, code="InvalidLetter", detail=str(fault))
                )
        try:
            sent.add(_with_bounces(self._its_queue().send(messages)))
        except CallFailed as failed:
            sent.faults += [EntryFault.of(failed, one.letter.message_id) for one in messages]
        return sent

    def facts(self) -> QueueFacts:
        """The queue's facts. Raises CallFailed."""
        return self._its_queue().facts()

    def _its_queue(self) -> SqsQueue:
        """The queue, whose URL SQS is asked for once. Raises CallFailed."""
        if self._queue is None:
            *_, account, name = self._target.place.split(":")
            with naming("GetQueueUrl"):
                answer = self._sqs.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
            self._queue = SqsQueue(self._sqs, answer["QueueUrl"])
        return self._queue


def _with_bounces(sent: Sent) -> Sent:
    """The result, with each fault that may be the letter's or the queue's turned into a bounce."""
    unheard = [one for one in sent.faults if one.is_refusal and one.code not in TARGET_REFUSALS]
    sent.bounced |= {one.key: one.code for one in unheard}
    sent.faults = [one for one in sent.faults if one.key not in sent.bounced]
    return sent


def _bare(one: Outgoing, letter: Letter) -> Outgoing:
    bare = replace(one, letter=letter)
    bare.carries_metadata = False
    bare.size = letter.size
    return bare


class FunctionTarget:
    """A function, invoked asynchronously. The request id identifies an accepted event and a letter left by it."""

    def __init__(self, lambdas: Any, target: Target, origin: Origin) -> None:
        self._lambdas = lambdas
        self._target = target
        self._origin = origin

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Invoke the function with each letter's event."""
        return deliver_one_by_one("Invoke", outgoing, self._give)

    def _give(self, one: Outgoing) -> str:
        event = event_for_function(one.letter, self._origin, self._target)
        with naming("Invoke"):
            answer = self._lambdas.invoke(
                FunctionName=self._target.place,
                InvocationType="Event",
                Payload=check_size(event, MOST_OF_AN_EVENT),
            )
        return str(answer["ResponseMetadata"].get("RequestId") or one.letter.message_id)


class StreamTarget:
    """A Firehose delivery stream. It returns no id that is seen again, so an accepted record keeps the letter's id."""

    def __init__(self, firehose: Any, target: Target) -> None:
        self._firehose = firehose
        self._name = target.place.rpartition("/")[2]

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Put each letter as one record."""
        return deliver_one_by_one("PutRecord", outgoing, self._give)

    def _give(self, one: Outgoing) -> str:
        record = check_size(record_for_stream(one.letter), MOST_OF_A_RECORD)
        with naming("PutRecord"):
            self._firehose.put_record(DeliveryStreamName=self._name, Record={"Data": record})
        return one.letter.message_id


class StateMachineTarget:
    """A state machine. The execution's name identifies an accepted letter."""

    def __init__(self, states: Any, target: Target, origin: Origin) -> None:
        self._states = states
        self._target = target
        self._origin = origin

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Start an execution for each letter. An existing execution with this delivery's name was accepted before."""
        return deliver_one_by_one("StartExecution", outgoing, self._give)

    def _give(self, one: Outgoing) -> str:
        execution = execution_of(one, self._origin)
        check_size(execution.input.encode(), MOST_OF_AN_INPUT)
        try:
            with naming("StartExecution"):
                self._states.start_execution(
                    stateMachineArn=self._target.place, name=execution.name, input=execution.input
                )
        except CallFailed as failed:
            if failed.code != _STARTED_ALREADY or not execution.is_named_by_us:
                raise
        return execution.name


class TopicTarget:
    """A topic that a rule or a schedule publishes to. SNS's message id identifies an accepted letter."""

    def __init__(self, sns: Any, target: Target, origin: Origin) -> None:
        self._sns = sns
        self._target = target
        self._origin = origin

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Publish each letter."""
        return deliver_one_by_one("Publish", outgoing, self._give)

    def _give(self, one: Outgoing) -> str:
        publication = publication_of(one.letter, self._origin)
        check_size(publication["Message"].encode(), MOST_OF_A_PUBLICATION)
        try:
            with naming("Publish"):
                answer = self._sns.publish(TopicArn=self._target.place, **publication)
        except CallFailed as failed:
            # This is not about the letter's content; SNS reports a message attribute of this name in other words.
            if failed.detail.startswith(_NO_TOPIC):
                raise CallFailed(failed.call, "InvalidTopic", failed.detail) from failed
            raise
        return str(answer["MessageId"])
