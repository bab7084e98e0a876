"""What a person could do to a deployed stack: make dead letters, invoke a pass, break something."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from demo.orders import Order
from demo.stack import DeployedStack, Depths

_RECEIVES_BEFORE_DEATH = 3
#: SQS purges a queue at most once a minute.
_BETWEEN_PURGES = 61.0

#: Carries every kind of attribute, and a group id.
DRESSED = Order(number=3)


class ByHand:
    """One deployed stack without consumer, in a person's hands."""

    def __init__(self, stack: DeployedStack) -> None:
        self.stack = stack

    def empty(self) -> None:
        """Leave nothing in the queues and the state table."""
        self.stack.aws.pass_time(_BETWEEN_PURGES)
        for url in (self.stack.source_url, self.stack.dead_letter_url, self.stack.parking_lot_url):
            self.stack.sqs.purge_queue(QueueUrl=url)
        for key in self.state_keys():
            self.stack.dynamodb.delete_item(TableName=self._table, Key={"PK": {"S": key}})

    def state_keys(self) -> list[str]:
        items = self.stack.dynamodb.scan(TableName=self._table, ConsistentRead=True)["Items"]
        return [item["PK"]["S"] for item in items]

    def add_letters(self, *orders: Order) -> list[str]:
        """Let orders die as SQS has it: received three times, never deleted. Their MessageIds."""
        sent = self.stack.send(orders)
        for _ in range(_RECEIVES_BEFORE_DEATH + 1):  # the last receive finds them dead
            while self.receive(self.stack.source_url, visibility_timeout=1):
                pass
            self.stack.aws.pass_time(2)
        return list(sent)

    def receive(self, url: str, *, visibility_timeout: int = 30) -> list[dict[str, Any]]:
        answer = self.stack.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=visibility_timeout,
            WaitTimeSeconds=0,  # the queue itself would have it wait
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def invoke(self, payload: bytes = b"{}") -> Any:
        """Run one pass; whatever the function answers."""
        answer = self.stack.functions.invoke(
            FunctionName=self.stack.outputs["RedriveFunctionName"], Payload=payload
        )
        body = answer["Payload"].read()
        assert "FunctionError" not in answer, body
        return json.loads(body)

    def hold_lease(self, *, seconds: float) -> None:
        """Take the lease as another pass would."""
        expires_at = self.stack.now().timestamp() + seconds
        self.stack.dynamodb.put_item(
            TableName=self._table,
            Item={
                "PK": {"S": f"LEASE#{self.stack.queue_name}"},
                "Owner": {"S": "somebody else"},
                "ExpiresAt": {"N": str(expires_at)},
            },
        )

    @contextmanager
    def environment(self, **changed: str) -> Iterator[None]:
        """The function with some of its variables changed."""
        function = self.stack.outputs["RedriveFunctionName"]
        settings = self.stack.functions.get_function_configuration(FunctionName=function)
        before = settings["Environment"]["Variables"]
        self.stack.functions.update_function_configuration(
            FunctionName=function, Environment={"Variables": before | changed}
        )
        try:
            yield
        finally:
            self.stack.functions.update_function_configuration(
                FunctionName=function, Environment={"Variables": before}
            )

    def assert_untouched(self, letters: list[str]) -> None:
        """All letters are in the DLQ, visible and unknown to the ledger; nothing is anywhere else."""
        assert self.stack.depths() == Depths(source=0, dead_letters=len(letters), parked=0)
        seen = self.receive(self.stack.dead_letter_url, visibility_timeout=0)
        assert {message["MessageId"] for message in seen} == set(letters)
        # Three receives from the source queue, and this one.
        counts = {message["Attributes"]["ApproximateReceiveCount"] for message in seen}
        assert counts == {str(_RECEIVES_BEFORE_DEATH + 1)}
        assert not [key for key in self.state_keys() if key.startswith("MESSAGE#")]

    @property
    def _table(self) -> str:
        return self.stack.outputs["StateTableName"]


def assert_intact(message: dict[str, Any], order: Order) -> None:
    """Body, attributes with their exact types, and group are as they were sent; only the metadata is new."""
    attributes = dict(message["MessageAttributes"])
    metadata = attributes.pop("RedriveTrail")
    assert metadata["DataType"] == "String"
    assert message["Body"] == order.body
    assert attributes == order.attributes
    assert message["Attributes"].get("MessageGroupId") == order.group_id
