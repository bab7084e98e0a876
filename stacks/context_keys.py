"""Which context keys there are: the app's own, those of the CDK, and no others, since a misspelt one changes nothing unseen.

``-c modee=dry_run`` would deploy a re-driver that acts. How far two names may differ and still be the same slip is
anybody's guess, so that whatever is not listed here is refused.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from redrive.errors import Fault
from redrive.spelling import misspelt

#: How the CDK's keys begin: its feature flags, its switches, and what its look-ups remember (cdk.context.json).
#: https://docs.aws.amazon.com/cdk/v2/guide/featureflags.html, and `ContextProvider` of aws-cdk 2.275.
_OF_THE_CDK = (
    "@aws-cdk/",
    "@aws-cdk-containers/",
    "aws:cdk:",
    "aws-cdk:",
    "ami:",
    "availability-zones:",
    "cc-api-provider:",
    "endpoint-service-availability-zones:",
    "hosted-zone:",
    "key-provider:",
    "load-balancer:",
    "load-balancer-listener:",
    "plugin:",
    "security-group:",
    "ssm:",
    "vpc-provider:",
)
#: What the CDK's command line writes without a namespace.
_OF_ITS_COMMAND = ("cdk-migrate", "cli-telemetry")


def unknown_keys(values: Mapping[str, Any], names: Iterable[str]) -> list[Fault]:
    """A fault for each key that is neither one of ``names`` nor the CDK's, with the nearest name or else all of them."""
    known = tuple(names)
    strange = [key for key in values if key not in known and not _is_of_the_cdk(key)]
    near = misspelt(strange, known)
    accepted = {key: f"the name {name}" for key, name in near.items()}
    every = f"one of {', '.join(sorted(known))}, or a key of the CDK"
    return [
        Fault(
            setting=key,
            seen=values[key],
            accepted=f"{accepted.get(key, every)} (no setting is called {key})",
        )
        for key in strange
    ]


def _is_of_the_cdk(key: str) -> bool:
    return key.startswith(_OF_THE_CDK) or key in _OF_ITS_COMMAND
