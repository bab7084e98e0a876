"""The probe that a person runs on AWS, run on the emulator: every question gets an answer, and nothing is left."""

from typing import Any

import pytest

from bench.account_probe import Probe, removed_at_the_end
from emulator.process import LocalAws


def test_every_question_is_answered_and_nothing_stays(
    aws: LocalAws, sqs: Any, cloudwatch: Any
) -> None:
    probe = Probe(sqs, cloudwatch, minutes=6, sleep=aws.pass_time, clock=aws.clock.now)

    with removed_at_the_end(probe):
        answers = probe.answers()

    assert answers["duplicate_on_fifo"] == {
        "same_message_id": True,
        "same_sequence_number": True,
        "messages": 1,
    }
    assert answers["move_to_dlq"]["same_message_id"] is True
    assert answers["move_to_dlq"]["same_sent_timestamp"] is True
    assert answers["receive_attempt"].keys() == {"same_messages", "same_handles"}
    left = sqs.list_queues(QueueNamePrefix=probe.name).get("QueueUrls", [])
    assert left == []


def test_each_figure_is_recorded_minute_by_minute(aws: LocalAws, sqs: Any, cloudwatch: Any) -> None:
    """One sum over all minutes grows with each of them, and one maximum never falls."""
    probe = Probe(sqs, cloudwatch, minutes=6, sleep=aws.pass_time, clock=aws.clock.now)

    with removed_at_the_end(probe):
        told = probe.metrics()

    sent, age = (
        told["figures"][name] for name in ("NumberOfMessagesSent", "ApproximateAgeOfOldestMessage")
    )
    assert [readings[-1]["value"] for readings in sent.values()][:1] == [20]
    assert len(age) >= 4
    assert told["revised"]["NumberOfMessagesSent"] == []
    assert told["received"] == [10, 10, 10]
    first, *_ = next(iter(sent.values()))
    assert first["at"] > next(iter(sent))


def test_what_it_made_is_removed_after_a_failure_too(sqs: Any, cloudwatch: Any) -> None:
    probe = Probe(sqs, cloudwatch, minutes=1)

    def fails() -> None:
        with removed_at_the_end(probe):
            probe.queue("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert sqs.list_queues(QueueNamePrefix=probe.name).get("QueueUrls", []) == []
