"""A re-driver for a DLQ of each origin, on a local AWS that enforces IAM;
and an outage of all that letters go back to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from demo.event_log import Event
from demo.stack import Depths
from emulator import cdk
from emulator.process import LocalAws
from smart_redriver.oncall.deployment.places import read_outputs
from tests.e2e.origins.endpoint import POISON, Endpoint
from tests.e2e.origins.letters import EACH, Dead, of_rules, of_schedules, of_sns, raw_of_sns
from tests.e2e.origins.places import (
    MACHINE_ARN,
    STREAM_ARN,
    TARGET_TOPIC_ARN,
    Places,
    function_arn,
    queue_arn,
)
from tests.e2e.origins.redriver import FUNCTIONS, OriginStack, toml_of
from tests.e2e.synthesized import deploy_all

_MINUTE = 60.0
_OUTAGE_MINUTES = 15
#: Nothing ever took longer; a story that does is told as it ended.
_PATIENCE_MINUTES = 90
#: Nothing comes back later than this: three tries of a function, and the waits between them.
_LAST_RETURN_MINUTES = 5

#: One strike parks, and at once.
_SETTINGS = {"max_attempts": "1", "last_chance_seconds": "0"}


class World:
    """All that is deployed, and what was put into the DLQs."""

    def __init__(self, aws: LocalAws, endpoint: Endpoint) -> None:
        self.aws, self.endpoint = aws, endpoint
        cdk.prepare(aws)
        self.places = Places(aws)
        self.subscriptions: dict[str, str] = {}
        entries = {**self._make_functions(), **self._make_the_others()}
        self.outputs = self._deploy(entries)
        self.entries = {name: self._stack_of(name) for name in entries}
        self.put: list[Dead] = []
        self.log: dict[str, list[Event]] = {name: [] for name in entries}
        self.during_outage: dict[str, Depths] = {}
        #: Seconds that verdicts on a function are waited for after a letter was given to it.
        self.waits: dict[str, set[int]] = {name: set() for name in FUNCTIONS}
        #: Marks of each function's events by the requests that were accepted.
        self.requests: dict[str, dict[str, str]] = {name: {} for name in FUNCTIONS}

    def _make_functions(self) -> dict[str, list[str]]:
        """One that fails into a DLQ, and one that leaves a record at a destination, after its only try."""
        for name in FUNCTIONS:
            self.places.make_queue(f"{name}-dlq")
            down = {"Environment": {"Variables": {"DOWN": "1"}}}
            to_dlq = {"DeadLetterConfig": {"TargetArn": queue_arn(f"{name}-dlq")}}
            self.places.make_function(name, **down, **(to_dlq if name == "invoices" else {}))
        self.places.functions.put_function_event_invoke_config(
            FunctionName="refunds",
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": queue_arn("refunds-dlq")}},
        )
        return {name: [function_arn(name)] for name in FUNCTIONS}

    def _make_the_others(self) -> dict[str, list[str]]:
        """DLQs and who fails to them; a subscriber and a function that nobody is to call."""
        places = self.places
        for name in ("order-events", "news", "parcels", "nightly"):
            places.make_queue(f"{name}-dlq")
        places.make_queue("audit")
        places.subscribe("sqs", queue_arn("audit"))
        places.make_function("bystander")
        subscribers = {
            "shipping": ("lambda", function_arn("shipping")),
            "billing": ("sqs", queue_arn("billing")),
            "archive": ("firehose", STREAM_ARN),
            "hook": ("http", self.endpoint.url),
        }
        self.subscriptions = {
            name: places.subscribe(
                *one, "order-events-dlq", self.endpoint.token if name == "hook" else None
            )
            for name, one in subscribers.items()
        }
        places.call_by_rule(function_arn("routing"), "parcels-dlq")
        return {
            "order-events": [
                f"{self.subscriptions[name]}={place}" for name, (_, place) in subscribers.items()
            ],
            "news": [queue_arn("news")],
            "parcels": [
                function_arn("routing"),
                MACHINE_ARN,
                queue_arn("returns"),
                TARGET_TOPIC_ARN,
            ],
            "nightly": [function_arn("report"), queue_arn("chores")],
        }

    def _deploy(self, entries: Mapping[str, list[str]]) -> dict[str, str]:
        listed = self.aws.work_dir / "queues.toml"
        listed.write_text("\n".join(toml_of(name, targets) for name, targets in entries.items()))
        folder = self.aws.work_dir / "deployment"
        told = deploy_all(self.aws, {"queues": str(listed), **_SETTINGS}, folder)
        return read_outputs(told)

    def _stack_of(self, name: str) -> OriginStack:
        prefix = "".join(word.capitalize() for word in name.split("-"))
        outputs = {one.removeprefix(prefix): value for one, value in self.outputs.items()}
        return OriginStack(self.aws, outputs)

    # -- the story ------------------------------------------------------------------------------

    def fail(self) -> None:
        """Let all deliveries fail, as they did when the letters were made, and for a while after."""
        for function in FUNCTIONS:
            for number in range(EACH):
                self._invoke(function, f"{function}-{number}")
            self._invoke(function, POISON)
        subscriptions = self.subscriptions
        self.put += [*of_sns(subscriptions), *raw_of_sns(), *of_rules(), *of_schedules()]
        for one in self.put:
            self.places.sqs.send_message(
                QueueUrl=self.entries[one.entry].dead_letter_url,
                MessageBody=one.body,
                MessageAttributes=one.attributes,
            )
        for _ in range(_OUTAGE_MINUTES):
            self._live()
        self.during_outage = {name: stack.depths() for name, stack in self.entries.items()}

    def recover(self) -> None:
        """All is up again, or there for the first time."""
        self.endpoint.is_down = False
        for name in FUNCTIONS:
            self.places.functions.update_function_configuration(
                FunctionName=name, Environment={"Variables": {}}
            )
        for name in ("shipping", "routing", "report"):
            self.places.make_function(name)
        for name in ("billing", "returns", "chores"):
            self.places.make_queue(name)
        self.places.make_topic("heard")
        self.places.make_queue("news", MaximumMessageSize="262144")
        self.places.make_machine_and_stream()

    def drain(self) -> None:
        """Let time pass until nothing is left but what is to be parked, with live events meanwhile."""
        for _ in range(_PATIENCE_MINUTES):
            self._live()
            if self.is_drained():
                break
        self._pass(_LAST_RETURN_MINUTES)
        for name, stack in self.entries.items():
            self.log[name] += stack.redriver_log.fresh()

    def is_drained(self) -> bool:
        return all(
            stack.depths()
            == Depths(source=0, dead_letters=0, parked=self.to_be_parked(name).total())
            for name, stack in self.entries.items()
        )

    def to_be_parked(self, entry: str) -> Counter[str]:
        """Why letters of an entry end in its parking lot, and how many."""
        if entry in FUNCTIONS:
            return Counter({"MAX_ATTEMPTS": 1})
        return Counter(one.parked_for for one in self.put if one.entry == entry and one.parked_for)

    def _live(self) -> None:
        """A minute, with an event for each function."""
        for function in FUNCTIONS:
            self._invoke(function, f"{function}-{len(self.requests[function])}")
        self._pass(1)
        for function in FUNCTIONS:
            circuit = self.entries[function].state_item(f"CIRCUIT_BREAKER#lambda:{function}") or {}
            self.waits[function].update(
                round(_seconds(batch["LastTryAt"], batch["DueAt"]))
                for batch in circuit.get("Pending", ())
            )

    def _invoke(self, function: str, mark: str) -> None:
        request = self.places.invoke(function, {"mark": mark})
        self.requests[function][request] = mark

    def _pass(self, minutes: int) -> None:
        self.aws.pass_time(minutes * _MINUTE, step=_MINUTE)


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
