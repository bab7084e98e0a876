"""Receives letters and recognises them: the reading half of a round. Nothing here decides or writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.passes.ports import DeadLetters, Ledger
from smart_redriver.engine.triage.case import Case, GroupView
from smart_redriver.engine.triage.ledger import Entry

#: Letters of one round: what one BatchGetItem can ask the ledger about.
ROUND_SIZE = 100

#: SQS hands out at most ten letters a call.
LETTERS_A_RECEIVE = 10


@dataclass(frozen=True, slots=True)
class Read:
    """Letters in hand, how many were asked for, and whether the queue showed no more of them."""

    cases: tuple[Case, ...] = ()
    asked: int = 0
    is_end: bool = False


def read_letters(
    queue: DeadLetters,
    ledger: Ledger,
    limit: int,
    *,
    hidden_for: timedelta,
    max_bytes: int = sys.maxsize,
) -> Read:
    """Receive at most `limit` letters and look each up in the ledger. Raises CallFailed, with all visible again.

    It ends with an answer without letters, when the queue shows no more for now, and when `max_bytes` are reached,
    because letters in hand must fit into the function's memory. A FIFO queue may give nine letters more: messages that
    follow in the group of one in hand can't be received later.
    """
    letters: list[Letter] = []
    views: dict[str | None, GroupView] = {}
    size, is_end = 0, False
    try:
        while len(letters) < limit and size < max_bytes:
            wanted = (
                LETTERS_A_RECEIVE if queue.is_fifo else min(limit - len(letters), LETTERS_A_RECEIVE)
            )
            received = queue.receive(wanted, hidden_for=hidden_for)
            if not received:
                is_end = True
                break
            if queue.is_fifo:
                views |= _views(received)
            letters += received
            size += sum(one.weight for one in received)
        # SQS sometimes hands a letter out twice; the later receipt handle is the one that deletes it.
        once = {letter.message_id: letter for letter in letters}
        cases = recognise(list(once.values()), ledger)
    except CallFailed as failed:
        # Those that can't be put back come back later by themselves.
        failed.left = queue.hide((letter, timedelta()) for letter in letters)
        raise
    if views:
        cases = [replace(one, group_view=views[one.letter.group_id]) for one in cases]
    return Read(tuple(cases), limit, is_end)


def _views(received: Sequence[Letter]) -> dict[str | None, GroupView]:
    """Return how much of each group one receive returned: a full receive may have cut off its last group.

    SQS fills an answer from one group first. A full answer that returns to a group was not filled so, and may have cut
    off any of them.
    """
    groups = [group_id for group_id, _ in groupby(one.group_id for one in received)]
    views = dict.fromkeys(groups, GroupView.WHOLE)
    if len(received) < LETTERS_A_RECEIVE:
        return views
    if len(views) == 1:
        return dict.fromkeys(views, GroupView.FULL)
    is_mixed = len(groups) > len(views)
    return views | dict.fromkeys(groups if is_mixed else groups[-1:], GroupView.CUT)


def recognise(letters: list[Letter], ledger: Ledger) -> list[Case]:
    """Look letters up in the ledger. Raises CallFailed.

    A copy that could not carry its metadata is recognised by its own id: the kept metadata names the original. A
    message to which a consumer copied redrive metadata is a letter of its own.
    """
    if not letters:
        return []
    ids = (one for letter in letters for one in (letter.original_id, *letter.known_as[1:]))
    known = ledger.read_ledger(ids)
    entries = known.entries
    letters = [_with_kept_metadata(letter, known.metadata) for letter in letters]
    by_kept_metadata = {letter.original_id for letter in letters} - entries.keys()
    entries = entries | _further(ledger, by_kept_metadata & _carried(letters, known.metadata))
    cases = [Case(letter=one, entry=entries.get(one.original_id)) for one in letters]
    copies = {case.message_id for case in cases if case.is_strangers_copy}
    own = _further(ledger, copies)
    return [
        Case(letter=_on_its_own(case), entry=own.get(case.message_id))
        if case.message_id in copies
        else case
        for case in cases
    ]


def _on_its_own(copy: Case) -> Letter:
    """A copied message as a letter of its own, from the original's queue: in the parking lot SQS can't say."""
    return replace(copy.letter.without_metadata(), source_arn=copy.source_arn)


def _carried(letters: Iterable[Letter], kept: Iterable[str]) -> set[str]:
    """Original ids of the letters whose metadata the ledger kept."""
    kept_for = set(kept)
    return {letter.original_id for letter in letters if not kept_for.isdisjoint(letter.known_as)}


def _with_kept_metadata(letter: Letter, metadata: Mapping[str, RedriveMetadata]) -> Letter:
    if letter.metadata is not None:
        return letter
    kept = next((metadata[one] for one in letter.known_as if one in metadata), None)
    return letter.with_metadata(kept) if kept else letter


def _further(ledger: Ledger, ids: set[str]) -> dict[str, Entry]:
    return dict(ledger.read_ledger(sorted(ids)).entries) if ids else {}


MIB = 1_048_576
#: Bytes of memory that the function needs without large letters in hand: Python, boto3 and 24 connections. A pass over
#: 20,000 letters of 1 KiB peaks at 70 to 90 MiB in docs/benchmarks/memory.json, where TLS is left out.
AT_REST = 130 * MIB
#: A letter in hand takes memory several times: as received, as text, and as it is sent. The average measured there, for
#: letters of 256 KiB to 1 MiB, is below 3; the rest is for the moment when all letters are at their worst.
COPIES = 5
#: Bytes of letters that one round may have in hand before it stops receiving. A round of large letters has that plus
#: one more receive, of ten at most.
ROUND_BYTES = 2 * MIB


def bytes_in_hand(memory_mib: int) -> int:
    """Bytes of letters that a pass may have in hand at once, in a function with this much memory."""
    return max(MIB, (memory_mib * MIB - AT_REST) // COPIES)
