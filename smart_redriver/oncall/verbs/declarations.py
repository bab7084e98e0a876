"""Declares every verb of `redrive` once: what it does, its options, and the function that carries it out.

The command with its help, the console's page with its forms, and the API with its description come from this table.
`act` names a function as `module:function`, which is imported when the verb is used. It takes the session and the
given values, plans, asks and acts, and returns the exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from smart_redriver.oncall.terminal.exits import LONGEST_REASON, Exit, Misused
from smart_redriver.oncall.verbs.options import Kind, Option, Side, kept_file

if TYPE_CHECKING:
    from smart_redriver.oncall.deployment.session import Session

#: The given values by the options' names. Options without a value are left out.
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing that can be done.

    Attributes:
        about: what it does, in a sentence. `typed`: what the command's help says in addition.
        examples: uses of the command. `answer`: the fields of its `--json`, parts in brackets. Fields may be added, but
            never removed.
        changes: it changes something, and therefore asks.
        sides: where it is offered. Verbs that only look have addresses of their own on the page.

    """

    name: str
    about: str
    act: str
    typed: str = ""
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    answer: str = ""
    changes: bool = False
    sides: Side = Side.COMMAND

    def options_on(self, side: Side) -> tuple[Option, ...]:
        """Return the options that this side offers."""
        return tuple(one for one in self.options if side in one.sides)

    def option(self, name: str) -> Option:
        """The option with this name."""
        return next(one for one in self.options if one.name == name)

    def run(self, session: Session, given: Given) -> Exit:
        """Carry out the verb. Raises CallFailed, Misused and Refused."""
        act: Callable[[Session, Given], Exit] = resolve_name(f"smart_redriver.oncall.{self.act}")
        usual = {
            one.name: one.default
            for one in self.options
            if one.default is not None and one.sides is Side.BOTH
        }
        files = {
            one.name: kept_file(given[one.name])
            for one in self.options
            if one.kind is Kind.FILE and isinstance(given.get(one.name), str)
        }
        return act(session, {**usual, **given, **files})


def said(text: str) -> str:
    """Return the text of a reason. Raises Misused."""
    if not text.strip():
        raise Misused("It is empty: give a reason for the next person.")
    if len(text.strip()) > LONGEST_REASON:
        raise Misused(f"It has {len(text.strip()):,} characters, at most {LONGEST_REASON:,}.")
    return text.strip()


def _flag(name: str, about: str, **more: Any) -> Option:
    return Option(name=name, about=about, kind=Kind.FLAG, default=False, **more)


def _kept(name: str, about: str) -> Option:
    return Option(name=name, about=about, kind=Kind.FILE, sides=Side.COMMAND)


def _file(about: str, sides: Side = Side.COMMAND) -> Option:
    return Option(
        name="file", about=about, kind=Kind.FILE, is_needed=True, is_argument=True, sides=sides
    )


#: Options that select letters. A letter must match all that are given.
FILTERS = (
    Option(name="contains", about="Only letters whose body contains this.", metavar="TEXT"),
    Option(
        name="where", about="Only letters for whose JSON body this is true.", metavar="JMESPATH"
    ),
    Option(
        name="since",
        about="Only those first seen, or parked, since then: 2h, 3d, or ISO 8601.",
        metavar="WHEN",
    ),
    Option(name="until", about="Only those first seen, or parked, before then.", metavar="WHEN"),
    Option(
        name="parked_as",
        about="Only those parked for this, such as MAX_ATTEMPTS.",
        metavar="REASON",
    ),
    Option(name="error", about="Only those whose consumer's error contains this.", metavar="TEXT"),
    Option(
        name="cause",
        about="Only those whose cause, as `causes` and `letters` group them, contains this.",
        metavar="TEXT",
    ),
)
#: The filters for letters in the DLQ; the others need something that is unknown there.
DLQ_FILTERS = tuple(one for one in FILTERS if one.name not in ("parked_as", "error"))
_IDS = Option(
    name="ids",
    about="Current or original ids, or the first six characters of one, or more.",
    kind=Kind.TEXTS,
    metavar="ID",
    is_argument=True,
)
_ALL = _flag("all", "Every letter.")
_FROM_DLQ = _flag("from_dlq", "Letters of the DLQ instead of the parking lot.")
_WHY = Option(
    name="reason",
    about="Why, for the audit trail.",
    longest=LONGEST_REASON,
    metavar="TEXT",
    read=said,
)
#: A required reason: the next person must learn why nothing moves, or everything.
_NEEDED_WHY = replace(_WHY, about="Why: `status` shows it to the next person.", is_needed=True)
_VALIDATE = Option(
    name="validate",
    about="Check each body with this command; letters that it refuses stay.",
    metavar="CMD",
    sides=Side.COMMAND,
)
_DRY_RUN = _flag("dry_run", "Show the plan, do nothing.", sides=Side.COMMAND)
_INSISTS = _flag(
    "even_though_paused",
    "Do not ask again if the queue is paused or its circuit is not CLOSED.",
    sides=Side.COMMAND,
)
_LINKS = _flag("links", "Show links to the AWS console.")
#: Letters a second, ten times the highest `max_rate`. A larger number may be none that a pass can count with.
_HIGHEST_RATE = 1_000_000
_SHARED_DLQ = "\n\nIf several queues share a DLQ, name one with `--queue`."

_ENTRY = (
    "original_id, current_id, status, reason, cause, error, is_permanent, redrive_count, strikes, first_seen, "
    "last_redrive, parked_at, held_until, history"
)
_HEADLINE = "headline [topic, colour, text, until, then]"
#: The fields in the answer to an order on letters, and those of its plan.
_MOVED = (
    "done, discarded, skipped (counts by reason), failed (counts by reason), missing (ids), "
    "not_met (hidden by then, or behind others of their group), gone (somebody else took them), "
    "hidden (could not be looked at), interrupted"
)
_PLANNED = (
    f"{_MOVED}. With --dry-run: plan [count, is_exact, groups, samples [original_id, body (its beginning)], missing, "
    "hidden], left_out, overtaking (on FIFO)"
)

VERBS = (
    Verb(
        name="status",
        about="Show what is wrong, and what happens next: circuit, depths, last pass, alarms.",
        typed=" For all queues unless one is named.",
        act="verbs.status:act",
        options=(
            _LINKS,
            _flag("overview", "One line for each queue that needs attention."),
            Option(
                name="home",
                about="Overview of another account or Region. Repeat it for several.",
                kind=Kind.TEXTS,
                metavar="PROFILE[/REGION]",
            ),
        ),
        answer=(
            f"queues [queue, origin, at, {_HEADLINE}, sources [queue, target, depth, circuit, next, "
            "last_canary [batch, letters, verdict, sent_at], draining_until, "
            "pace [out, letters_per_second, drained_by], "
            "causes [cause, held_since, next_canary_at, canary_is_out, canaries_failed]], "
            "of the first source circuit [state, since, reason, window, "
            "awaiting_verdict [batch, letters, fate_unknown, due_at]] and next [step, at], "
            "look_again_seconds, paused, paused_until, mode, passes, schedule, draining_until, "
            "depths [source, dead_letters, parked], oldest_letter_seconds, least_seconds_to_expiry, "
            "last_pass [at, outcome, reason], last_change [at, who, what, outcome, why], "
            "alarms, alarm_details [name, short, meaning, first], links, unknown]. With --overview or --home: "
            "homes [home, region, fault, queues [queue, circuits [queue, state, since], depths [dead_letters, parked], "
            "paused, mode, alarms, headline, quiet, unknown]]"
        ),
        examples=(
            "redrive status",
            "redrive status --queue orders --json",
            "redrive status --home shop-eu --home shop-us/us-east-1",
        ),
    ),
    Verb(
        name="watch",
        about="Show `status` live, until Ctrl-C.",
        act="verbs.status:act_live",
        options=(
            Option(
                name="every",
                about="How often.",
                kind=Kind.NUMBER,
                least=0.5,
                default=5.0,
                metavar="SECONDS",
            ),
            Option(
                name="times",
                about="Stop after this many looks.",
                kind=Kind.WHOLE,
                least=1,
            ),
            _LINKS,
        ),
        answer="As of status, at each look.",
        examples=("redrive watch", "redrive watch --every 2"),
    ),
    Verb(
        name="causes",
        about="Show why letters are stuck, as their consumers reported it, the most frequent cause first.",
        typed=" From the ledger only.",
        act="verbs.causes:act",
        answer=(
            f"queues [queue, at, {_HEADLINE}, letters, groups [queue, cause (null: none reported), "
            "letters, in_dlq, parked, not_in_ledger, since, parked_since, state (held, waiting, "
            "flowing, parked), held_since, next_canary_at, canary_is_out, canaries_failed, example "
            "[original_id, first_line], line]]"
        ),
        examples=("redrive causes", "redrive causes --queue orders --json"),
    ),
    Verb(
        name="letters",
        about="Peek at the DLQ.",
        typed=" On SQS each look counts as a receive; the command says how many.",
        act="verbs.letters:act",
        options=(
            Option(
                name="limit",
                about="Look at this many letters at most.",
                kind=Kind.WHOLE,
                least=1,
                default=20,
            ),
            *DLQ_FILTERS,
            _flag("body", "Show each body, too, or the beginning of a long one."),
            _flag(
                "held",
                "List letters that wait for a time or a cause of their own, from the ledger.",
            ),
        ),
        answer=(
            "queue, depth, seen, receives, letters [message_id, original_id, cause, sent_at, redrive_count, strikes, "
            "bytes, attributes, ledger, waits [for, until]; body with --body]. "
            f"With --held: queue, count, letters [{_ENTRY}, waits [for, until]]"
        ),
        examples=(
            "redrive letters",
            "redrive letters --where \"customer.country == 'DE'\" --body",
        ),
    ),
    Verb(
        name="parked",
        about="List the letters in the parking lot, by reason and error.",
        typed=" From the ledger: nothing is received.",
        act="verbs.parked:act",
        options=(
            _flag("list", "Letter by letter."),
            Option(
                name="limit",
                about="List this many letters at most.",
                kind=Kind.WHOLE,
                least=1,
                default=100,
            ),
            *FILTERS,
        ),
        answer=(
            "queue, count, not_in_ledger, groups [reason, cause, error, count, first_parked, last_parked]; "
            f"with --list letters [{_ENTRY}]"
        ),
        examples=("redrive parked", "redrive parked --list --parked-as MAX_ATTEMPTS --since 2h"),
    ),
    Verb(
        name="show",
        about="Show one letter, by any id it ever had: where it is, its history attempt by attempt, "
        "its attributes and body.",
        act="verbs.show:act",
        options=(
            Option(
                name="message_id",
                about="Any id that the letter has or had.",
                metavar="ID",
                is_needed=True,
                is_argument=True,
            ),
            Option(
                name="look",
                about="Search for its body among this many letters at most.",
                kind=Kind.WHOLE,
                least=0,
                default=100,
            ),
            _flag("logs", "Also show what its consumer logged about it."),
            _flag(
                "whole", "All of body, attributes, traceback and log, not the beginning of each."
            ),
            Option(
                name="log_group",
                about="Search this log group, if no report names one.",
                longest=512,
                metavar="NAME",
            ),
        ),
        answer=(
            f"where, target, unfit, ledger [{_ENTRY}], waits [for, until], "
            "failure [reported_at, error_class, first_line, traceback, receive_count, permanent, "
            "consumer [name, version, log_group, log_stream, request_id], log_command], "
            "message [message_id, sent_at, attributes [DataType, StringValue or BinaryBase64], group_id, body]"
        ),
        examples=("redrive show 5a8b1f0e-0000-4000-8000-0123456789ab",),
    ),
    Verb(
        name="logs",
        about="Print the log of the re-driver's own function: its events, one a line, and its tracebacks.",
        act="verbs.logs:act",
        options=(
            Option(name="since", about="2h, 3d, or ISO 8601.", default="30m", metavar="WHEN"),
            Option(name="event", about="Only these events, such as letter.parked.", metavar="NAME"),
            Option(
                name="limit",
                about="This many at most, the newest.",
                kind=Kind.WHOLE,
                least=1,
                default=100,
            ),
            _flag("all", "Include its metrics and Lambda's own lines."),
        ),
        examples=("redrive logs", "redrive logs --since 2h --event letter.parked"),
    ),
    Verb(
        name="history",
        about="Show who changed what, when and why, from the audit trail.",
        act="verbs.audit:act_history",
        options=(
            Option(
                name="days",
                about="This many days back.",
                kind=Kind.WHOLE,
                least=1,
                most=400,
                default=30,
            ),
        ),
        answer=(
            "queue, changes [at, who, what, why], acts [the same with begin and end in one, and "
            "outcome]"
        ),
        examples=("redrive history", "redrive history --days 7"),
    ),
    Verb(
        name="audit",
        about="Show the fate of every letter of a span of time, and which are not accounted for.",
        typed=" Looks through DLQ and parking lot: on SQS each look counts as a receive.",
        act="verbs.audit:act",
        options=(Option(name="since", about="2h, 3d, or ISO 8601.", default="7d", metavar="WHEN"),),
        answer=(
            "queue, since, letters, fates (counts), deleted (counts by note), unexplained "
            "[original_id, why], hidden"
        ),
        examples=("redrive audit", "redrive audit --since 2026-11-20T00:00:00Z --json"),
    ),
    Verb(
        name="replay",
        about="Send parked letters back to their source queue or target, without strikes.",
        typed=" Ctrl-C stops it; run it again to go on.",
        act="verbs.replay:act",
        options=(
            _IDS,
            _ALL,
            _FROM_DLQ,
            Option(
                name="rate",
                about="Letters a second, 0 for no limit. Default: the setting max_rate.",
                kind=Kind.NUMBER,
                least=0,
                most=_HIGHEST_RATE,
            ),
            _VALIDATE,
            _flag("follow", "Wait for their outcomes, five minutes at most."),
            _DRY_RUN,
            _INSISTS,
            _WHY,
            *FILTERS,
        ),
        answer=_PLANNED + ", rate",
        examples=(
            "redrive replay --all --dry-run",
            "redrive replay --error 'price is null' --validate './check-order' --rate 20",
        ),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="edit",
        about="Send an edited copy of one letter, or of many with a command. "
        "Originals are kept in a file for `undo`.",
        typed=" One letter opens in $EDITOR. Differences are shown first.",
        act="verbs.edit:act",
        options=(
            replace(_IDS, sides=Side.COMMAND),
            replace(_ALL, sides=Side.COMMAND),
            Option(
                name="command",
                flags="--with",
                about="Pipe each body through this command instead of $EDITOR.",
                metavar="CMD",
                sides=Side.COMMAND,
            ),
            Option(name="id", about="The letter, by an id.", is_needed=True, sides=Side.PAGE),
            Option(
                name="was",
                about="Its `fingerprint`, as it was opened.",
                is_needed=True,
                sides=Side.PAGE,
            ),
            Option(name="body", about="The edited body.", is_needed=True, sides=Side.PAGE),
            Option(
                name="attributes",
                about="The edited attributes, as `show` has them.",
                kind=Kind.OBJECT,
                is_needed=True,
                sides=Side.PAGE,
            ),
            _FROM_DLQ,
            _VALIDATE,
            _kept("export", "Keep the originals here. Default: a new file in this folder."),
            _DRY_RUN,
            _INSISTS,
            _WHY,
            *(replace(one, sides=Side.COMMAND) for one in FILTERS),
        ),
        answer=(
            _MOVED
            + ". With --with and --dry-run: plan [count of changed letters, staying (counts by reason), "
            "missing, hidden]"
        ),
        examples=(
            "redrive edit 5a8b1f0e-0000-4000-8000-0123456789ab --reason 'currency was missing'",
            'redrive edit --error KeyError --with "jq -c \'.currency = \\"EUR\\"\'" --dry-run',
        ),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="undo",
        about=(
            "Put the letters of a file into the parking lot as they were, in place of edited copies that came "
            "back."
        ),
        act="verbs.undo:act",
        options=(
            _file("What `edit` or `delete` kept.", Side.BOTH),
            _kept(
                "export", "Keep their present versions here. Default: a new file in this folder."
            ),
            _WHY,
        ),
        answer=_MOVED,
        examples=("redrive undo edited-20261121T155439Z-4f1c.jsonl",),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="park",
        about="Move letters from the DLQ to the parking lot, where they wait for a person.",
        act="verbs.park:act",
        options=(_IDS, _ALL, _DRY_RUN, _WHY, *FILTERS),
        answer=_PLANNED,
        examples=("redrive park --cause KeyError --reason 'until orders 2.4.2 is out'",),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="delete",
        about="Delete letters, after writing them to a file that `undo` and `import` take.",
        typed=" Asks with the count.",
        act="verbs.delete:act",
        options=(
            _IDS,
            _ALL,
            _FROM_DLQ,
            _kept("export", "Write them here first. Default: a new file in this folder."),
            _DRY_RUN,
            _WHY,
            *FILTERS,
        ),
        answer=_PLANNED,
        examples=("redrive delete --where 'test' --export test-orders.jsonl --reason 'load test'",),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="export",
        about="Write letters to a file, binary attributes included, and leave them where they are.",
        act="verbs.export:act",
        options=(
            _file("A new file, for JSON lines."),
            replace(_IDS, sides=Side.PAGE),
            replace(_ALL, about="Every letter, as without a filter."),
            _FROM_DLQ,
            *FILTERS,
        ),
        answer=(
            "file, count, is_complete. A line of the file: version, queue, message_id, original_id, "
            "sent_at, body, attributes, group_id, trace_header, source_arn, trail, first_seen, "
            "redrive_count, strikes, reason, error; unfit if it goes back to no target"
        ),
        examples=(
            "redrive export parked.jsonl",
            "redrive export dlq.jsonl --from-dlq --since 1d",
        ),
        sides=Side.BOTH,
    ),
    Verb(
        name="import",
        about="Send the letters of a file. Letters that the ledger shows as still there are skipped.",
        act="verbs.export:act_import",
        options=(
            _file("The file that `export` or `delete` wrote.", Side.BOTH),
            Option(
                name="to",
                about="Their destination.",
                choices=("parking-lot", "source"),
                default="parking-lot",
                sides=Side.COMMAND,
            ),
            _flag(
                "to_source",
                "To their source queue or target instead of the parking lot.",
                sides=Side.PAGE,
            ),
            Option(
                name="from_queue",
                about="Accept letters of this other queue as letters of this one.",
                kind=Kind.TEXTS,
                metavar="NAME",
                sides=Side.COMMAND,
            ),
            _flag(
                "even_though_there",
                "Also send letters that the ledger shows in the DLQ or the parking lot, because they were purged or "
                "have expired. If a copy is there, it goes.",
            ),
            _DRY_RUN,
            _INSISTS,
            _WHY,
        ),
        answer=_MOVED + ". With --dry-run: plan [count]",
        examples=(
            "redrive import parked.jsonl --dry-run",
            "redrive import parked.jsonl --to source",
        ),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="pause",
        about="Stop all redrives until `resume`, or for a while.",
        typed=" Letters near expiry are still renewed or parked.",
        act="verbs.pause:act",
        options=(
            _NEEDED_WHY,
            Option(name="for", about="Resume by itself after 90s, 20m, 2h.", metavar="DURATION"),
            _INSISTS,
        ),
        answer="queue, circuit, paused, paused_until",
        examples=("redrive pause --for 2h --reason 'database migration'",),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="resume",
        about="Let passes redrive again.",
        act="verbs.pause:act_resume",
        options=(_WHY,),
        answer="queue, circuit, paused, paused_until",
        examples=("redrive resume --reason 'migration is over'",),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="open",
        about="Force the circuit OPEN: nothing is redriven until the cool-down is over, then canaries decide.",
        typed=_SHARED_DLQ,
        act="verbs.pause:act_open",
        options=(_NEEDED_WHY,),
        answer="queue, circuit, paused, paused_until",
        examples=("redrive open --reason 'the payment provider is down'",),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="close",
        about="Force the circuit CLOSED: redrives begin with a window of 1.",
        typed=_SHARED_DLQ,
        act="verbs.pause:act_close",
        options=(_NEEDED_WHY,),
        answer="queue, circuit, paused, paused_until",
        examples=("redrive close --reason 'the provider is back, I checked'",),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="drain",
        about="Allow a larger window and rate for a while, after a fix. The circuit breaker still stops on failure.",
        act="verbs.drain:act",
        options=(
            Option(
                name="for",
                about="At most this long: 90s, 20m, 2h.",
                default="1h",
                metavar="DURATION",
            ),
            Option(
                name="window",
                about="Letters out at once. Default: ten times the present window.",
                kind=Kind.WHOLE,
                least=1,
            ),
            Option(
                name="rate",
                about="Letters a second. Default: twice max_rate.",
                kind=Kind.NUMBER,
                least=0.01,
                most=_HIGHEST_RATE,
            ),
            Option(
                name="follow",
                about="Run passes and show progress until the DLQ is empty.",
                kind=Kind.FLAG,
                flags="--follow/--no-follow",
                default=True,
                sides=Side.COMMAND,
            ),
            _INSISTS,
            _WHY,
        ),
        answer=(
            "depth_before, depth, circuit, end; with --no-follow window, windows (by source queue), "
            "rate, depth"
        ),
        examples=("redrive drain", "redrive drain --for 30m --rate 500 --no-follow"),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="run",
        about="Make one pass now, or show what the next one would do.",
        act="verbs.run:act",
        options=(
            _flag("dry_run", "Show what the next pass would do: verdicts, decisions, reasons."),
            _kept("forever", "Run passes here, as this file says, until stopped."),
            _WHY,
        ),
        answer=(
            "the pass's report, headline, circuits, verdicts; with --dry-run the first 100 decisions,"
            " and would [redriven, parked, discarded, renewed] instead of what was done"
        ),
        examples=(
            "redrive run --dry-run",
            "redrive run --yes",
            "redrive run --forever orders.toml --yes",
        ),
        changes=True,
        sides=Side.BOTH,
    ),
    Verb(
        name="doctor",
        about="Check the deployment.",
        typed=" Each thing that is wrong comes with its remedy; exit code 1 if there is any.",
        act="verbs.doctor:act",
        options=(
            _flag("all", "List what is well, too."),
            _kept("database", "Check the database of this file, which need not be deployed."),
            Option(
                name="library",
                about="Check it as this library's job tables, with what the role would be granted.",
                metavar="NAME",
                sides=Side.COMMAND,
            ),
        ),
        answer="queues [queue, findings [level (good, wrong, unknown), what, remedy]]",
        examples=(
            "redrive doctor",
            "redrive doctor --queue orders",
            "redrive doctor --database database.json --library river",
        ),
    ),
    Verb(
        name="console",
        about="Serve the console, a web page on this machine, until Ctrl-C.",
        typed=" Changes ask first, as in the commands.",
        act="console:act",
        options=(
            Option(
                name="port",
                about="Port to listen on; 0 for any free one.",
                kind=Kind.WHOLE,
                least=0,
                most=65535,
                default=0,
            ),
            Option(
                name="host",
                about="Listen on this address instead of loopback.",
                default="127.0.0.1",
            ),
            _flag("read_only", "Read-only: nothing can be changed."),
        ),
        answer="url, read_only, at the start",
        examples=("redrive console", "redrive console --read-only --port 8700"),
    ),
)
#: The verbs that can be ordered on the page.
ORDERS = tuple(one for one in VERBS if Side.PAGE in one.sides)


def verb(name: str) -> Verb:
    """The verb with this name."""
    return next(one for one in VERBS if one.name == name)
