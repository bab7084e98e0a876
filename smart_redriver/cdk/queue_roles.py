"""What a re-driver's queues must be to each other, and what each must be by itself."""

from collections.abc import Iterator, Mapping

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs

from redrive.errors import Fault

#: Account and Region.
_Home = tuple[str, str]


def role_faults(queues: Mapping[str, sqs.IQueue]) -> Iterator[Fault]:
    """Queues given in two roles, FIFO queues, and queues of different places; by the name of each queue's role.

    What is known only when the stack is deployed can't be compared, and is let through.
    """
    first: dict[str, str] = {}
    home: _Home | None = None
    for role, queue in queues.items():
        arn = queue.queue_arn
        seen = queue.node.path if cdk.Token.is_unresolved(arn) else arn
        if (other := first.setdefault(arn, role)) != role:
            yield Fault(setting=role, seen=seen, accepted=f"another queue than {other}")
        if queue.fifo:
            yield Fault(setting=role, seen=seen, accepted="a standard queue")
        here = _home(arn)
        home = home or here
        if home and here and here != home:
            account, region = home
            yield Fault(setting=role, seen=seen, accepted=f"a queue in {region}/{account}")


def _home(arn: str) -> _Home | None:
    if cdk.Token.is_unresolved(arn):
        return None
    _, _, _, region, account, _ = arn.split(":", 5)
    return None if cdk.Token.is_unresolved(region + account) else (account, region)
