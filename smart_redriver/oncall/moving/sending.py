"""Sends letters for a person: back to their source queues or to the parking lot. Or deletes them.

Letters are sent, recorded and deleted in the same way as in a pass. Without a send, a letter is deleted only once it
is in a file and the ledger says so. The person's own command (`--validate CMD`, `--with CMD`) gets each body first.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from smart_redriver.engine.aws.queues import owner_of
from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Letter, Unfit
from smart_redriver.engine.messages.outgoing import Outgoing
from smart_redriver.engine.passes.executor import Destination
from smart_redriver.engine.passes.ports import DeadLetters, Source
from smart_redriver.engine.passes.send_back import Forwarded, Leaving, Send, forward
from smart_redriver.engine.reports.outcomes import error_of
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.message_store import UNFIT
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.export_file import ExportFile, to_be_kept
from smart_redriver.oncall.letters.fifo_order import BEHIND, in_ranks
from smart_redriver.oncall.moving.work import Acted
from smart_redriver.oncall.terminal.exits import Misused

#: Says what is wrong with a letter's body; None if nothing. May be slow.
Validate = Callable[[Letter], str | None]


class Destinations:
    """The source queues or targets that letters belong to, each with its facts as a command begins.

    Raises CallFailed if the facts of one can't be read.
    """

    def __init__(self, session: Session) -> None:
        sources = self._sources = session.sources
        self._are_targets = bool(session.place.deployment.targets)
        self._by_name = {
            source.name: Destination(source=source, facts=source.facts()) for source in sources
        }

    def of(self, case: Case) -> Destination | None:
        """Return the place where a letter belongs; None if its queue is not served, or if it can go back to no target.

        A letter of SQS that does not say where it came from belongs to the first queue. A target is never guessed.
        """
        if case.letter.unfit or (self._are_targets and case.source_arn is None):
            return None
        owner = owner_of(self._sources, source_arn=case.source_arn, metadata=case.letter.metadata)
        return self._by_name[owner.name] if owner else None

    def refusal_of(self, case: Case) -> str | None:
        """Return why a letter has no place to go; None if it has one."""
        return why_not_served(case) if self.of(case) is None else None

    def each_with(self, cases: Sequence[Case]) -> Iterator[tuple[Destination, list[Case]]]:
        """Yield each destination that has some of the letters, with these letters."""
        for destination in self._by_name.values():
            if some := [case for case in cases if self.of(case) is destination]:
                yield destination, some


def why_not_served(case: Case) -> str:
    """Return the reason why a letter has no destination."""
    if case.letter.unfit or case.source_arn is None:
        return UNFIT[case.letter.unfit or Unfit.UNKNOWN_ORIGIN]
    return f"it belongs to another queue, {(case.source_arn or '').rpartition(':')[2]}"


def forward_for(
    session: Session,
    leaving: Sequence[Leaving],
    send: Send,
    out_of: DeadLetters,
    now: datetime,
    done_word: str,
) -> Forwarded:
    """Send, record and delete as a pass does, and warn the person about copies that could not be deleted.

    Letters of a group in a FIFO queue go one after the other. Those behind a refused one stay, and are in neither
    `sent` nor `not_sent`. Raises CallFailed when the ledger could not be written.
    """
    forwarded = Forwarded()
    stopped: set[str | None] = set()
    ranks = in_ranks(leaving, _group_of) if out_of.is_fifo else [list(leaving)]
    for rank in ranks:
        going = [one for one in rank if _group_of(one) not in stopped]
        part = forward(going, send, out_of=out_of, ledger=session.store, now=now)
        stopped |= _groups_of_the_refused(going, part)
        forwarded.add(part)
        if forwarded.failure is not None:
            break
    if left := len(forwarded.not_deleted):
        session.terminal.warn(
            f"{left} were {done_word}, but their old copies could not be deleted. The next pass or command discards "
            "them."
        )
    if forwarded.failure is not None:
        raise forwarded.failure
    return forwarded


def left_behind(cases: Sequence[Case], forwarded: Forwarded) -> list[tuple[Case, str]]:
    """Return letters that stay because an earlier one of their group was refused, with the reason."""
    dealt_with = forwarded.sent | {fault.key for fault in forwarded.not_sent}
    return [(case, BEHIND) for case in cases if case.message_id not in dealt_with]


def _group_of(one: Leaving) -> str | None:
    return one.outgoing.letter.group_id


def _groups_of_the_refused(going: Sequence[Leaving], part: Forwarded) -> set[str | None]:
    return {_group_of(one) for one in going if one.outgoing.letter.message_id not in part.sent}


def naming_source(faults: Iterable[EntryFault], source: str) -> list[EntryFault]:
    """The faults, each with the name of the source that the call was for: a command sends to several."""
    return [replace(fault, call=f"{fault.call} for {source}") for fault in faults]


class SendBack:
    """An `Act`: sends letters back to the source queues that they belong to, unchanged or as `edit` makes them.

    `note` goes into the ledger's history. `validate` can reject a letter, which then stays where it is. `keep` gets the
    unchanged letters before the first is sent, and returns faults for those it can't keep: these stay, too.
    """

    def __init__(
        self,
        session: Session,
        out_of: DeadLetters,
        *,
        note: str,
        validate: Validate | None = None,
        edit: Callable[[Letter], Letter] | None = None,
        keep: Callable[[Sequence[Case]], list[EntryFault]] = lambda _: [],
    ) -> None:
        self._session = session
        self._out_of = out_of
        self._note = note
        self._validate = validate
        self._edit = edit
        self._keep = keep
        self._destinations = Destinations(session)
        #: Groups of a FIFO queue that wait because one of their letters was refused and stays.
        self._stopped: set[str | None] = set()

    def __call__(self, few: Sequence[Case], *, until: datetime) -> Acted:
        """Send a few letters back. Raises CallFailed when the ledger could not be written."""
        faults = self._faults_of(few, until)
        acted = Acted(postponed=list(few[len(faults) :]))
        few = few[: len(faults)]
        acted.skipped = [(case, fault) for case in few if (fault := faults[case.message_id])]
        good = []
        for case in few:
            if faults[case.message_id]:
                self._stop_behind(case)
            elif case.letter.group_id in self._stopped:
                acted.skipped.append((case, BEHIND))
            else:
                good.append(case)
        for destination, some in self._destinations.each_with(good):
            self._send(some, destination, acted)
        return acted

    def _faults_of(self, few: Sequence[Case], until: datetime) -> dict[str, str | None]:
        """Return faults by message id for the letters that can be checked before `until`.

        At least one letter is checked, so that even a slow check makes progress.
        """
        faults: dict[str, str | None] = {}
        for case in few:
            if faults and self._session.clock() >= until:
                break
            faults[case.message_id] = self._fault_of(case)
        return faults

    def _stop_behind(self, case: Case) -> None:
        if self._out_of.is_fifo and self._destinations.of(case) is not None:
            self._stopped.add(case.letter.group_id)

    def _fault_of(self, case: Case) -> str | None:
        refusal = self._destinations.refusal_of(case)
        return refusal or (self._validate(case.letter) if self._validate else None)

    def _send(self, some: Sequence[Case], destination: Destination, acted: Acted) -> None:
        unkept = self._keep(some)
        acted.faults += unkept
        stay = {fault.key for fault in unkept}
        some = [case for case in some if case.message_id not in stay]
        now = self._session.clock()
        leaving = [self._leaving(case, destination, now) for case in some]
        source = destination.source
        forwarded = forward_for(self._session, leaving, source.deliver, self._out_of, now, "sent")
        self._add_up(some, forwarded, source.name, acted)

    def _add_up(
        self, some: Sequence[Case], forwarded: Forwarded, source: str, acted: Acted
    ) -> None:
        """Add the results of letters that were sent to this source."""
        acted.faults += [
            EntryFault(call=source, key=key, code=answer)
            for key, answer in forwarded.bounced.items()
        ]
        acted.done += [case for case in some if case.message_id in forwarded.sent]
        acted.faults += naming_source(forwarded.not_sent, source)
        refused = {fault.key for fault in forwarded.not_sent}
        for case in some:
            if case.message_id in refused:
                self._stop_behind(case)
        here = [case for case in some if case.message_id not in forwarded.bounced]
        acted.skipped += left_behind(here, forwarded)

    def _leaving(self, case: Case, destination: Destination, now: datetime) -> Leaving:
        source = destination.source
        outgoing = Outgoing(
            letter=self._edit(case.letter) if self._edit else case.letter,
            metadata=case.replay_metadata(source.name),
            size_limit=destination.facts.max_message_size,
            may_carry_metadata=source.carries_metadata,
            may_return=not source.settles_at_once,
            salt=case.entry.salt if case.entry else 0,
            before=case.letter if self._edit else None,
        )
        return Leaving(outgoing, partial(replayed, source, now, self._note, case))


def replayed(source: Source, now: datetime, note: str, case: Case, new_id: str) -> Entry:
    """The entry of a letter after its source accepted a person's send."""
    entry = case.known(source.name).replayed(
        replaced_id=case.message_id,
        new_id=new_id,
        redrive_count=case.replay_metadata(source.name).redrive_count,
        now=now,
        note=note,
    )
    return entry.accepted(now) if source.settles_at_once else entry


#: The reason for a letter that a person parked.
BY_HAND = "BY_HAND"


class Park:
    """An `Act`: parks letters, unchanged or as `edit` makes them.

    `note` goes into the ledger's history. `fault_of` can reject a letter, which then stays where it is. `keep` gets the
    unchanged letters before the first is sent.
    """

    def __init__(
        self,
        session: Session,
        out_of: DeadLetters,
        *,
        note: str,
        fault_of: Callable[[Letter], str | None] = lambda _: None,
        edit: Callable[[Letter], Letter] = lambda letter: letter,
        keep: Callable[[Sequence[Case]], object] = lambda _: None,
    ) -> None:
        self._session = session
        self._out_of = out_of
        self._note = note
        self._fault_of = fault_of
        self._edit = edit
        self._keep = keep
        self._limit = session.parking_lot.facts().max_message_size

    def __call__(self, few: Sequence[Case], *, until: datetime) -> Acted:  # noqa: ARG002 - quick
        """Park a few letters. Raises CallFailed when the ledger could not be written."""
        faults = {case.message_id: self._fault_of(case.letter) for case in few}
        skipped = [(case, fault) for case in few if (fault := faults[case.message_id])]
        good = [case for case in few if not faults[case.message_id]]
        if good:
            self._keep(good)
        now = self._session.clock()
        leaving = [self._leaving(case, now) for case in good]
        park = self._session.parking_lot.park
        forwarded = forward_for(self._session, leaving, park, self._out_of, now, "parked")
        done = [case for case in good if case.message_id in forwarded.sent]
        skipped += left_behind(good, forwarded)
        return Acted(done=done, skipped=skipped, faults=forwarded.not_sent)

    def _leaving(self, case: Case, now: datetime) -> Leaving:
        name = self._session.name_of(case)
        entry, letter = case.known(name), self._edit(case.letter)

        def record(new_id: str) -> Entry:
            return entry.parked(
                replaced_id=case.message_id,
                new_id=new_id,
                reason=BY_HAND,
                strikes=entry.strikes,
                now=now,
                error=error_of(letter.attributes),
                note=self._note,
            )

        metadata = case.next_metadata(name, None)
        return Leaving(Outgoing(letter=letter, metadata=metadata, size_limit=self._limit), record)


#: Ten letters are in hand at once, and they are hidden for five minutes.
TIMEOUT_SECONDS = 10
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of one run: its output, or why there is none."""

    out: bytes = b""
    fault: str | None = None


class OwnCommand:
    """A command that reads one body at a time from standard input. A non-zero exit code means no.

    No shell runs it. Quote as in a shell, and name one (`sh -c '...'`) to use pipes.
    """

    def __init__(self, option: str, command: str) -> None:
        """`option` is the option that the person gave it with. Raises Misused if there is no such command."""
        try:
            self._arguments = shlex.split(command)
        except ValueError as fault:
            raise Misused(f"{option} {command!r}: {fault}.") from fault
        if not self._arguments or shutil.which(self._arguments[0]) is None:
            raise Misused(f"{option} {command!r}: there is no such command.")

    def run(self, body: str) -> Finished:
        """Run it on one body, for ten seconds at most."""
        try:
            ended = subprocess.run(  # noqa: S603 - the caller's own command, with no shell
                self._arguments,
                input=body.encode(),
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
                # Ctrl-C in the terminal reaches the whole process group: the command would die, as if it had said no.
                process_group=0,
            )
        except subprocess.TimeoutExpired:
            return Finished(fault=f"it took longer than {TIMEOUT_SECONDS} s")
        except OSError as fault:
            return Finished(fault=f"it could not be started: {fault.strerror}")
        if ended.returncode == 0:
            return Finished(ended.stdout)
        lines = (ended.stderr or ended.stdout).decode(errors="replace").strip().splitlines()
        why = lines[-1][:_LONGEST_REASON] if lines else f"exit code {ended.returncode}"
        return Finished(fault=why)


def validator(command: str) -> Validate:
    """A check that gives each body to `command`. Raises Misused."""
    own = OwnCommand("--validate", command)

    def validate(letter: Letter) -> str | None:
        fault = own.run(letter.body).fault
        return f"not valid: {fault}" if fault else None

    return validate


def _is_deleted(entry: Entry | None) -> bool:
    return entry is not None and entry.status is Status.DELETED


class WriteAndDelete:
    """An `Act`: writes the file, then the ledger, then deletes.

    After a crash before the delete, the file holds the letter, and the ledger says DELETED and names the copy as
    replaced: the next pass that finds the copy discards it. A letter that is known to be there keeps its old entry.
    """

    def __init__(self, session: Session, file: ExportFile, reason: str, *, from_dlq: bool) -> None:
        self._session = session
        self._file = file
        self._from_dlq = from_dlq
        self._note = session.signed("deleted", reason)

    def __call__(self, few: Sequence[Case], *, until: datetime) -> Acted:  # noqa: ARG002 - quick
        now = self._session.clock()
        few, unread = to_be_kept(self._session, few, dlq=self._from_dlq)
        self._file.write(few)
        entries = [
            case.known(self._session.name_of(case)).deleted(
                message_id=case.message_id, now=now, note=self._note
            )
            for case in few
        ]
        known = self._known_before(few)
        self._session.store.write_ledger(entries, [], now)
        faults: list[EntryFault] = []
        try:
            faults = self._session.letter_store.remove(
                [case.letter for case in few], dlq=self._from_dlq
            )
        except KeyboardInterrupt:
            self._put_back(few, known)
            raise
        refused = {fault.key for fault in faults}
        self._put_back([case for case in few if case.message_id in refused], known)
        done = [case for case in few if case.message_id not in refused]
        return Acted(done=done, faults=unread + faults)

    def _known_before(self, few: Sequence[Case]) -> Mapping[str, Entry]:
        """The ledger's entries of letters in a table. They are not needed for letters in a queue."""
        if not self._session.letter_store.finds_by_id:
            return {}
        ids = [case.original_id for case in few]
        return self._session.store.read_ledger(ids).entries

    def _put_back(self, cases: Sequence[Case], known: Mapping[str, Entry]) -> None:
        """Restore the entries of letters that were not deleted, with strikes and history. Raises CallFailed.

        They are still there, or somebody else has moved them, and may have recorded that meanwhile.
        """
        session = self._session
        if not cases:
            return
        letters = [case.letter for case in cases]
        there = session.letter_store.still_there(letters, dlq=self._from_dlq)
        recorded = self._known_before(cases)
        entries = [
            known.get(case.original_id) or case.known(session.name_of(case))
            for case in cases
            if case.message_id in there and _is_deleted(recorded.get(case.original_id))
        ]
        if entries:
            session.store.write_ledger(entries, [], session.clock())
