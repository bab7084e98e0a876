"""What an account asks of every stack in it, whatever the stack is for: a permissions boundary, and tags.

Not of the construct: an app of somebody else's has ``PermissionsBoundary.of`` and ``Tags.of`` for all that is in it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from redrive.kinds import Kind, setting

_POLICY_ARN = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[\w+=,.@/-]+")
#: What tags of most services may consist of. `aws:` is AWS's own.
#: https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
_TAG_KEY = re.compile(r"(?!aws:)[\w .:/=+@-]{1,128}", re.IGNORECASE)
_TAG_VALUE = re.compile(r"[\w .:/=+@-]{0,256}")
_MAX_TAGS = 50

Tags = tuple[tuple[str, str], ...]


def _policy_arn() -> Kind[str]:
    def parse(value: Any) -> str:
        if value != "" and not _POLICY_ARN.fullmatch(str(value)):
            raise ValueError
        return str(value)

    return Kind(parse, "the ARN of a managed policy")


def _tags() -> Kind[Tags]:
    def parse(value: Any) -> Tags:
        # A table where it comes from cdk.json, one text where it comes from `-c`.
        pairs = value.items() if isinstance(value, Mapping) else _pairs(str(value))
        tags = tuple(sorted((str(key).strip(), str(one).strip()) for key, one in pairs))
        if len(tags) > _MAX_TAGS or len({key for key, _ in tags}) < len(tags):
            raise ValueError
        if not all(_TAG_KEY.fullmatch(key) and _TAG_VALUE.fullmatch(one) for key, one in tags):
            raise ValueError
        return tags

    return Kind(parse, f"a table, or KEY=VALUE separated by commas, at most {_MAX_TAGS}")


def _pairs(text: str) -> list[tuple[str, str]]:
    """Raises ValueError where a pair has no `=`."""
    pairs = []
    for one in filter(None, map(str.strip, text.split(","))):
        key, equals, value = one.partition("=")
        if not equals:
            raise ValueError
        pairs.append((key, value))
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRules:
    """Every rule with its default."""

    permissions_boundary_arn: str = setting("", _policy_arn(), "of every role that the stack makes")
    tags: Tags = setting((), _tags(), "of everything that can have any")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The rules' names, in the order of the table."""
        return tuple(one.name for one in fields(cls))

    def apply(self, stack: cdk.Stack) -> None:
        """Let all that is in the stack, and in those nested in it, keep the rules."""
        if self.permissions_boundary_arn:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(
                stack, "PermissionsBoundary", self.permissions_boundary_arn
            )
            iam.PermissionsBoundary.of(stack).apply(boundary)
        for key, value in self.tags:
            cdk.Tags.of(stack).add(key, value)
