"""Lists of existing queues, as a person would write them."""

from dataclasses import fields
from typing import Any

from smart_redriver.cdk import Resources

ACCOUNT = "111122223333"
REGION = "eu-west-1"


def queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def key_arn(digit: int, account: str = ACCOUNT) -> str:
    return f"arn:aws:kms:{REGION}:{account}:key/0000000{digit}-0000-4000-8000-000000000000"


def entry(name: str, **more: Any) -> dict[str, Any]:
    """One queue with a DLQ of its own."""
    arns = {"source_arn": queue_arn(name), "dead_letter_arn": queue_arn(f"{name}-dlq")}
    return {"name": name, **arns, **more}


def fifo_entry(name: str, *sources: str, **more: Any) -> dict[str, Any]:
    """The same, all of them FIFO."""
    dead_letters = queue_arn(f"{name}-dlq.fifo")
    return shared_entry(
        name, *(f"{one}.fifo" for one in sources), dead_letter_arn=dead_letters, **more
    )


def shared_entry(name: str, *sources: str, **more: Any) -> dict[str, Any]:
    """Several sources of one DLQ."""
    return entry(name, **{"source_arn": [queue_arn(one) for one in sources], **more})


def function_arn(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def subscription_arn(topic: str, digit: int = 1) -> str:
    return f"arn:aws:sns:{REGION}:{ACCOUNT}:{topic}:0000000{digit}-0000-4000-8000-000000000000"


def origin_entry(name: str, origin: str, *targets: str, **more: Any) -> dict[str, Any]:
    """A DLQ that something else than SQS fills."""
    dead_letters = queue_arn(f"{name}-dlq")
    return {
        "name": name,
        "origin": origin,
        "dead_letter_arn": dead_letters,
        "targets": [*targets],
        **more,
    }


def secret_arn(name: str) -> str:
    return f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{name}-AbCdEf"


def jobs_entry(name: str, **more: Any) -> dict[str, Any]:
    """A worker queue in Postgres."""
    database = {"host": f"{name}.example.com", "dbname": "app", "secret": secret_arn(name)}
    network = {
        "vpc_id": "vpc-0123456789abcdef0",
        "vpc_subnet_ids": ["subnet-0123456789abcdef0"],
        "vpc_security_group_ids": ["sg-0123456789abcdef0"],
    }
    return {"name": name, "origin": "postgres", "database": database, **network, **more}


def by_iam(name: str, **more: Any) -> dict[str, Any]:
    """The same, with IAM authentication."""
    database = {"host": f"{name}.example.com", "dbname": "app", "user": "redriver"}
    return jobs_entry(name, database=database, region=REGION, account=ACCOUNT, **more)


def in_role(role: str, given: object) -> dict[str, Any]:
    """An argument by its name, or by that of a field of ``resources``."""
    is_resource = role in {one.name for one in fields(Resources)}
    named: dict[str, Any] = {role: given}
    return {"resources": Resources(**named)} if is_resource else named


def cluster_arn(name: str) -> str:
    return f"arn:aws:kafka:{REGION}:{ACCOUNT}:cluster/{name}/0123abcd-1"


def topics_entry(name: str, *, kafka: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A DLQ topic in MSK, which IAM lets the function into."""
    topics = {
        "servers": f"b-1.{name}.example.com:9098",
        "consumer_group": "shop",
        "topics": ["shop.orders"],
        "dead_letters": "shop.orders.DLT",
        "iam_region": REGION,
        **(kafka or {}),
    }
    network = {key: value for key, value in jobs_entry(name).items() if key.startswith("vpc_")}
    told = {"name": name, "origin": "kafka", "kafka": topics, "cluster_arn": cluster_arn(name)}
    return {**told, **network, **more}


def by_password(name: str, **more: Any) -> dict[str, Any]:
    """The same, with SCRAM."""
    entry = topics_entry(name, **more)
    del entry["kafka"]["iam_region"], entry["cluster_arn"]
    entry["kafka"]["secret"] = secret_arn(f"AmazonMSK_{name}")
    return entry
