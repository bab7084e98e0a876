"""The options of `python -m bench.play`: what may be asked, and why some of it is refused."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

from bench.option_types import flapping, number, whole
from simulator.consumers import Beyond
from simulator.outside_of_sqs import PLACES, check_outside
from simulator.rivals import EventSource, NativeMove, NoBreaker, PublishedPattern
from simulator.scenarios import PolicyMaker, Scenario, named
from simulator.variation import OWN, ImpossibleError, Wishes, vary
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.config.targets import SERVED, Origin
from smart_redriver.engine.errors import SettingsError

OURS = "ours"
RIVALS: dict[str, PolicyMaker] = {
    "no-breaker": NoBreaker,
    "published-pattern": PublishedPattern,
    "event-source": EventSource,
    "native-move": NativeMove,
}

#: Settings that are the source queue's, and so the world's: a rival meets them, too.
OF_THE_SOURCE = {
    "max_receive_count": "max_receive_count",
    "source_visibility_timeout_seconds": "visibility_timeout",
}

#: They send without a message group, as their sources show them, which a FIFO queue refuses.
WITHOUT_GROUPS = frozenset(RIVALS) - {"native-move"}

DESCRIPTION = """\
Play one scenario of the design on the real pass, in virtual time, and print what became of its letters.
Without --scenario the world is made of the options alone: 200 letters and a healthy consumer, unless told otherwise."""

EPILOG = """\
Scenarios are named by their rows; variants have more after a colon, and `--list` shows all of them: 3:live,
4:LETTERS:HOURSh, 5:live, 9:UP-DOWN, 13:PERCENT, 14:BACKOFF:LETTERS, 15:LETTERS[:exact], 16:VISIBILITYxRECEIVES[:outage],
20:few|flap|receives[:deep], 21:LEFT[:half|open|paused], 22:copy, 24:PILLS:LIVE, 25:live, 26:outage|poison, 27:many|live|quiet,
28:NUMBER|lambda, 29:LIVE|quiet, 30:LETTERS:PER_MINUTE, 31:LETTERS:PERCENT, 34:LETTERS:HOURSh[:live], 35:event|alarm|neighbour|false,
36:outage|fifo, 37:VISIBILITYxRECEIVES, 38:HOURSh, 39:held|foreign, 40:good, drawn:SEED, M:ROW:SCHEDULE:VISIBILITYxRECEIVES.
Every setting of the re-driver is an option by its name: --schedule-minutes 1."""

FIGURES = """\
The figures:
  deliveries                deliveries to the consumer, of letters and live messages
  wasted                    deliveries to a consumer that was down, or lacked what the message needs
  wasted on letters         those of letters that were dead at the start
  stripped                  deliveries without the producer's attributes
  parked rightly, wrongly   poison pills, good letters in the parking lot at the end
  parked early              good letters parked sooner than their last chance
  at large                  letters neither done nor parked at the end
  lost, repeated            messages in no queue and not done; done more than once
  drained after minutes     from the recovery until each good letter is done and each pill parked
  redriven in outage        letters sent back while the consumer, or what it needs, was down
  falls                     collapses of the consumer under overload (--beyond fall)
  live died                 live messages that died because of letters: beyond those in the same world without redrives
  live wait p99 seconds     99th percentile of the live messages' extra time
  breaches                  broken limits of the scenario; a changed world has none
  overtakings, tried past   on FIFO queues: letters done, or tried, before an earlier one of their group
  repeated within window    on FIFO queues: done twice within five minutes
All pills should be parked rightly; of all else, less is better. The other figures describe the circuit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The runs to play. `is_as_designed`: the scenario as it stands in the design, by our policy.

    `beside`: the same world under another policy, to compare with.
    """

    scenario: Scenario
    policy_name: str
    policy: PolicyMaker | None
    seeds: range
    json: bool
    lists: bool
    is_as_designed: bool
    origin: str = "sqs"
    beside: Asked | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parse(argv: Sequence[str]) -> Asked:
    """Read the options. Raises SystemExit(2), with a sentence on stderr, for what can't be."""
    parser = _make_parser()
    options = parser.parse_args(argv)
    _refuse_dry(parser, options)
    given = {
        name: value for name in Settings.names() if (value := getattr(options, name)) is not None
    }
    asked = _asked(parser, options, given)
    if options.compare is None:
        return asked
    if options.policy != OURS:
        parser.error(f"--compare: what is compared is ours; leave out --policy {options.policy}.")
    options.policy = options.compare
    of_the_source = {name: value for name, value in given.items() if name in OF_THE_SOURCE}
    return replace(asked, beside=_asked(parser, options, of_the_source))


def _asked(
    parser: argparse.ArgumentParser, options: argparse.Namespace, given: dict[str, str]
) -> Asked:
    """The world of these options under their policy, with these settings."""
    _refuse_targets(parser, options)
    _refuse_unheard(parser, options)
    try:
        scenario = OWN if options.scenario is None else named(options.scenario)
        settings = _settings(scenario, given, options.policy)
        wishes = _wishes(options, given, settings)
        if options.origin in PLACES:
            check_outside(options.origin, scenario, wishes)
        varied = vary(scenario, wishes, settings)
    except KeyError:
        parser.error(f"no scenario is named {options.scenario}; --list shows all of them.")
    except ImpossibleError as refusal:
        parser.error(str(refusal))
    except SettingsError as refusal:
        parser.error("; ".join(map(str, refusal.faults)))
    if varied.conditions.fifo and options.policy in WITHOUT_GROUPS:
        parser.error(f"{options.policy} sends without a message group; a FIFO queue wants one.")
    return Asked(
        scenario=varied,
        policy_name=options.policy,
        policy=RIVALS.get(options.policy),
        seeds=range(options.seed, options.seed + options.seeds),
        json=options.json,
        lists=options.list,
        origin=options.origin or Origin.SQS.value,
        is_as_designed=varied is scenario and scenario is not OWN and options.policy == OURS,
    )


def _refuse_targets(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.origin in (None, Origin.SQS.value):
        return
    if options.origin in PLACES and options.policy != OURS:
        parser.error(f"--origin {options.origin}: {options.policy} knows queues of SQS alone.")
    if options.policy != OURS:
        parser.error(f"--origin {options.origin}: {options.policy} sends letters to a queue alone.")
    if SERVED[Origin(options.origin)] and (options.reports or options.permanent):
        parser.error(f"--reports: with --origin {options.origin} no consumer of a queue is there.")


def _refuse_unheard(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    for name in ("reports", "permanent"):
        if getattr(options, name) and options.policy != OURS:
            parser.error(f"--{name}: a consumer reports to ours; {options.policy} hears nothing.")


def _refuse_dry(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Each of its passes looks at all letters again and sends none, for hundreds of virtual hours: minutes for nothing."""
    if options.mode is not None and options.mode.strip() == Mode.DRY_RUN.value:
        parser.error(
            "--mode dry_run: nothing goes back in it, so that there is nothing to play. Leave it out for what would "
            "become of the letters; `redrive run --dry-run` asks a deployed stack."
        )


def _settings(scenario: Scenario, given: dict[str, str], policy: str) -> Settings:
    ours_alone = sorted(given.keys() - OF_THE_SOURCE.keys())
    if policy != OURS and ours_alone:
        option = f"--{ours_alone[0].replace('_', '-')}"
        message = f"{option} is a setting of ours; {policy} is played as its source describes it."
        raise ImpossibleError(message)
    usual = {name: getattr(scenario.settings, name) for name in Settings.names()}
    return Settings.parse(usual | given)


def _wishes(options: argparse.Namespace, given: dict[str, str], settings: Settings) -> Wishes:
    wished: dict[str, Any] = {
        one.name: getattr(options, one.name)
        for one in fields(Wishes)
        if one.name not in OF_THE_SOURCE.values()
    }
    if options.origin == Origin.POSTGRES.value:
        wished["origin"] = None  # its world is another, and not another kind of this one
    for setting, wish in OF_THE_SOURCE.items():
        if setting in given:
            wished[wish] = getattr(settings, setting)
    return Wishes(**wished)


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m bench.play",
        description=DESCRIPTION,
        epilog=f"{EPILOG}\n\n{FIGURES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--scenario", metavar="NAME", help="a row of the design's table, or one of its variants")
    add("--list", action="store_true", help="show all scenarios and play none")
    add("--seed", type=whole(0, 2**31), default=0, help="decides everything left to chance")
    add("--seeds", type=whole(1, 1000), default=1, help="so many of them, with means")
    add("--json", action="store_true", help="one JSON object instead of a table")
    add("--policy", choices=(OURS, *RIVALS), default=OURS, help="who redrives (ours)")
    add("--compare", choices=RIVALS, help="the same world under this policy, beside ours")
    _add_world(parser.add_argument_group("the world"))
    settings = parser.add_argument_group("settings of the re-driver")
    for setting in fields(Settings):
        names = [f"--{setting.name.replace('_', '-')}"]
        if setting.name == "source_visibility_timeout_seconds":
            names.append("--visibility-timeout")
        settings.add_argument(*names, metavar="VALUE", help=setting.metadata["meaning"])
    return parser


def _add_world(world: argparse._ArgumentGroup) -> None:
    add = world.add_argument
    add("--letters", type=whole(0, 2_000_000), help="dead letters at the start")
    add("--poison", type=whole(0, 2_000_000), help="poison pills among them")
    add("--down-hours", type=number(0, 960), help="the consumer is down for so long")
    add(
        "--partial",
        type=number(0, 1),
        help="share of letters that need what is down; the rest succeed",
    )
    add("--off-hours", type=number(0, 960), help="the consumer polls nothing for so long")
    add("--flapping", type=flapping, metavar="UP/DOWN", help="minutes up, minutes down: 10/10")
    add("--receive-failures", type=number(0, 1), help="share of deliveries that fail by chance")
    add(
        "--consumer-backoff",
        type=whole(0, 43_200),
        help="seconds it hides a failed message (ChangeMessageVisibility)",
    )
    add(
        "--whole-batches",
        action="store_true",
        help="one that fails fails its batch of ten, as without ReportBatchItemFailures",
    )
    add("--consumer-delay", type=whole(0, 43_200), help="seconds it takes for a message")
    add("--live-per-minute", type=number(0, 6000), help="messages that producers send")
    add("--live-poison-per-minute", type=number(0, 6000), help="poison pills that producers send")
    add("--count-lag", type=number(0, 120), help="seconds by which counts may be late")
    add("--count-noise", type=whole(0, 1_000_000), help="by how many messages they may be wrong")
    add("--metrics-lag", type=number(0, 3600), help="seconds by which CloudWatch is late")
    add("--reports", action="store_true", help="the consumer reports its outcomes, by the kit")
    add("--permanent", action="store_true", help="and marks poison as permanent, which parks it")
    add("--fifo", action="store_true", help="FIFO queues, and a consumer that keeps their order")
    add("--groups", type=whole(1, 1_000_000), help="message groups of a FIFO queue (10)")
    add("--origin", choices=[one.value for one in Origin], help="what fills the DLQ (sqs)")
    add("--capacity", type=number(0.1, 100_000), help="messages a second that it bears, live too")
    add(
        "--beyond",
        choices=[one.value for one in Beyond],
        help="beyond it messages wait, tries fail, throughput collapses, the consumer falls (wait)",
    )
    add("--broken-kind", type=number(0, 1), help="share of the message types that fail, live too")
    add("--broken-hours", type=number(0, 960), help="they fail for so long")
    add("--valid-hours", type=number(0.01, 960), help="messages fail for ever once older")
    add("--watch-hours", type=number(0, 2000), help="when it ends, whatever is left")
