"""A local AWS whose logs are replayed against the protocol at its end.

Every function's log that passes have written to is checked, whatever test had it write that: what the protocol does not
allow is an error of the last test that uses this AWS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from demo.event_log import EventLog
from emulator.process import LocalAws
from proof.trace import check


@contextmanager
def checked_aws(**options: Any) -> Iterator[LocalAws]:
    """As `LocalAws`, with a check after all went well."""
    with LocalAws(**options) as aws:
        yield aws
        faults = faults_of(aws)
        assert not faults, faults


def faults_of(aws: LocalAws) -> dict[str, list[str]]:
    """What logs say that the protocol does not allow, by log group."""
    logs = aws.client("logs")
    pages = logs.get_paginator("describe_log_groups").paginate()
    groups = [one["logGroupName"] for page in pages for one in page["logGroups"]]
    found = {
        group: check((event.name, event.fields) for event in EventLog(logs, group).fresh())
        for group in groups
    }
    return {group: faults for group, faults in found.items() if faults}
