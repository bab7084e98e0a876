"""Queues that existed before their re-driver: deployed by one CDK app, adopted by ours."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.orders import Order
from demo.stack import DeployedStack, Depths
from demo.story import Played, Snapshot
from emulator import cdk
from emulator.process import LocalAws
from smart_redriver.oncall.deployment.places import read_outputs
from tests.e2e.synthesized import deploy_all

SHOP_DIR = Path(__file__).resolve().parent / "existing_app"

QUEUE_LIST = """\
[[queues]]
name = "orders"
source_arn = "{OrdersSourceArn}"
dead_letter_arn = "{OrdersDeadLetterArn}"
source_key_arn = "{KeyArn}"
dead_letter_key_arn = "{KeyArn}"

[[queues]]
name = "refunds"
source_arn = ["{RefundsSourceArn}", "{ReturnsSourceArn}"]
dead_letter_arn = "{RefundsDeadLetterArn}"
max_attempts = 3

[[queues]]
name = "mails"
source_arn = "{MailsSourceArn}"
dead_letter_arn = "{MailsDeadLetterArn}"
"""

_OF_A_REDRIVER = (
    "SourceQueueUrl",
    "DeadLetterQueueUrl",
    "ParkingLotQueueUrl",
    "OutcomeQueueUrl",
    "RedriveFunctionName",
)
_OF_A_CONSUMER = (
    "SampleConsumerFunctionName",
    "SampleControlTableName",
    "SampleIdempotencyTableName",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullOrder(Order):
    """A message that has no room for one attribute more."""

    @property
    def attributes(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            f"Field{index}": {"DataType": "String.label", "StringValue": f"{self.number}-{index}"}
            for index in range(10)
        }


class Adopted(DeployedStack):
    """One adopted dead-letter queue, with all its sources, as a stack of its own."""

    def __init__(
        self,
        aws: LocalAws,
        redriver: Mapping[str, str],
        shop: Mapping[str, str],
        name: str,
        *further: str,
        order: type[Order] = Order,
    ) -> None:
        outputs = {one: redriver[name + one] for one in _OF_A_REDRIVER}
        outputs |= {one: shop[name + one] for one in _OF_A_CONSUMER}
        outputs["StateTableName"] = redriver["StateTableName"]
        super().__init__(aws, outputs)
        self.order = order
        self._further = [
            DeployedStack(
                aws,
                outputs | {one: shop[other + one] for one in ("SourceQueueUrl", *_OF_A_CONSUMER)},
            )
            for other in further
        ]

    def send(self, orders: list[Order]) -> dict[str, Order]:  # type: ignore[override]
        """To its source queues by turns."""
        stacks: list[Any] = [super(), *self._further]
        sent: dict[str, Order] = {}
        for index, stack in enumerate(stacks):
            sent |= stack.send([one for one in orders if one.number % len(stacks) == index])
        return sent

    def set_dependency(self, *, is_down: bool, **others: Any) -> None:
        super().set_dependency(is_down=is_down, **others)
        for stack in self._further:
            stack.set_dependency(is_down=is_down, **others)

    def depths(self) -> Depths:
        own = super().depths()
        source = own.source + sum(stack.depths().source for stack in self._further)
        return Depths(source=source, dead_letters=own.dead_letters, parked=own.parked)

    def processed(self) -> set[str]:
        known = self._originals()
        done = super().processed().union(*(stack.processed() for stack in self._further))
        return {known.get(message_id, message_id) for message_id in done}

    def parked(self) -> dict[str, dict[str, Any]]:
        known = self._originals()
        return {known.get(one, one): message for one, message in super().parked().items()}

    def repeats(self) -> int:
        """Deliveries whose work was done before."""
        logs = [stack.consumer_log() for stack in (self, *self._further)]
        events = [event for log in logs for event in log.fresh()]
        return sum(event.name == "message.already_processed" for event in events)

    def _originals(self) -> dict[str, str]:
        """Original ids by the id of the last copy, which a message without room for redrive metadata goes by."""
        table = self.outputs["StateTableName"]
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return {
            item["CurrentMessageId"]["S"]: item["PK"]["S"].removeprefix("MESSAGE#")
            for page in pages
            for item in page["Items"]
            if "CurrentMessageId" in item
        }


class Life:
    """What happens to one adopted queue; the others' lives go on beside it."""

    def __init__(self, stack: Adopted) -> None:
        self.stack = stack
        self.played = Played()
        self._number = 0

    def send(self, count: int, *, poison: bool = False) -> None:
        numbers = range(self._number + 1, self._number + 1 + count)
        self._number += count
        orders = [self.stack.order(number=number, is_poison=poison) for number in numbers]
        self.played.sent |= self.stack.send(orders)

    def fall(self) -> None:
        self.stack.set_dependency(is_down=True)
        self.played.outage_began = self.stack.now()

    def recover(self) -> None:
        self.stack.set_dependency(is_down=False)
        self.played.outage_ended = self.stack.now()

    def look(self) -> Snapshot:
        seen = Snapshot(
            chapter="",
            at=self.stack.now(),
            minutes=len(self.played.snapshots) + 1,
            is_down=self.played.outage_began is not None and self.played.outage_ended is None,
            sent=len(self.played.sent),
            depths=self.stack.depths(),
            circuit=self.stack.circuit(),
            events=tuple(self.stack.redriver_log.fresh()),
        )
        self.played.snapshots.append(seen)
        return seen

    def is_drained(self) -> bool:
        """Whether nothing is left but what is parked, as far as the last look showed."""
        depths = self.played.snapshots[-1].depths
        return depths == Depths(source=0, dead_letters=0, parked=len(self.played.poison))


def deploy_shop(aws: LocalAws) -> dict[str, str]:
    """The application, as it was before."""
    return cdk.deploy(aws, SHOP_DIR, {}, aws.work_dir / "shop")


def deploy_redriver(aws: LocalAws, shop: Mapping[str, str], **context: str) -> dict[str, str]:
    """Our app, with the shop's queues in a TOML file."""
    listed = aws.work_dir / "queues.toml"
    listed.write_text(QUEUE_LIST.format(**shop))
    told = deploy_all(aws, {"queues": str(listed), **context}, aws.work_dir / "redriver")
    return read_outputs(told)


def let_report(
    aws: LocalAws, shop: Mapping[str, str], redriver: Mapping[str, str], name: str
) -> None:
    """Give the consumer of one queue the kit's variables and, by the managed policy, the right to report."""
    functions, iam = aws.client("lambda"), aws.client("iam")
    function = shop[f"{name}SampleConsumerFunctionName"]
    settings = functions.get_function_configuration(FunctionName=function)
    iam.attach_role_policy(
        RoleName=settings["Role"].rpartition("/")[2],
        PolicyArn=redriver[f"{name}ReportPolicyArn"],
    )
    variables = settings["Environment"]["Variables"] | {
        "OUTCOME_QUEUE_URL": redriver[f"{name}OutcomeQueueUrl"],
        "PARKING_LOT_URL": redriver[f"{name}ParkingLotQueueUrl"],
    }
    functions.update_function_configuration(
        FunctionName=function, Environment={"Variables": variables}
    )


def metadata_in(message: Mapping[str, Any]) -> Any:
    """The metadata that a message carries; None where it has none."""
    carried = message.get("MessageAttributes", {}).get("RedriveTrail")
    return json.loads(carried["StringValue"]) if carried else None
