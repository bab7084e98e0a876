"""What a strict account requires of the construct's resources: key, network, log retention and concurrency.

They are declared like the function's settings, and read from the same flat context keys. Without them, the defaults of
the services apply: keys that AWS owns, and a function outside any VPC.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from smart_redriver.cdk.queue_clashes import KEY_ARN, partition_faults
from smart_redriver.engine.config.kinds import Kind, read_fields, setting, whole
from smart_redriver.engine.errors import Fault, SettingsError

ANY_KEY = "a key: `kms.Key.from_key_arn` makes one of an ARN; an alias of it can't be granted"

#: The retention times that CloudWatch Logs accepts, in days.
#: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
_RETENTIONS = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    150: logs.RetentionDays.FIVE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    400: logs.RetentionDays.THIRTEEN_MONTHS,
    545: logs.RetentionDays.EIGHTEEN_MONTHS,
    731: logs.RetentionDays.TWO_YEARS,
    1096: logs.RetentionDays.THREE_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
    2192: logs.RetentionDays.SIX_YEARS,
    2557: logs.RetentionDays.SEVEN_YEARS,
    2922: logs.RetentionDays.EIGHT_YEARS,
    3288: logs.RetentionDays.NINE_YEARS,
    3653: logs.RetentionDays.TEN_YEARS,
}
#: One invocation can make passes for three minutes. Ticks and people come meanwhile; with 1, Lambda throttles them.
_LEAST_RESERVED, _MOST_RESERVED = 2, 100

# Before the CDK has looked up a VPC, it is vpc-12345, and its subnets are s-12345 and p-12345.
_VPC = re.compile(r"vpc-[0-9a-f]{5,17}")
_SUBNET = re.compile(r"(?:subnet|[ps])-[0-9a-f]{5,17}")
_SECURITY_GROUP = re.compile(r"sg-[0-9a-f]{8,17}")
#: https://docs.aws.amazon.com/lambda/latest/api/API_VpcConfig.html
_MAX_SUBNETS, _MAX_SECURITY_GROUPS = 16, 5


def _one(pattern: re.Pattern[str], accepted: str) -> Kind[str]:
    def parse(value: Any) -> str:
        if value != "" and not _fits(pattern, value):
            raise ValueError
        return str(value)

    return Kind(parse, accepted)


def _several(pattern: re.Pattern[str], accepted: str, at_most: int) -> Kind[tuple[str, ...]]:
    def parse(value: Any) -> tuple[str, ...]:
        # It is a list if it comes from cdk.json or from code, and one text if it comes from `-c`.
        listed = value if isinstance(value, list | tuple) else str(value).strip().split(",")
        ids = (
            ()
            if listed == [""] and isinstance(value, str)
            else tuple(str(one).strip() for one in listed)
        )
        if (
            len(ids) > at_most
            or len(set(ids)) < len(ids)
            or not all(_fits(pattern, one) for one in ids)
        ):
            raise ValueError
        return ids

    return Kind(parse, f"at most {at_most} {accepted}, each once, separated by commas")


def _fits(pattern: re.Pattern[str], value: Any) -> bool:
    """Whether a value matches. A token of another construct, which only a deployment knows, matches, too.

    The CDK does not know TOML's other types.
    """
    is_token = isinstance(value, str) and cdk.Token.is_unresolved(value)
    return is_token or pattern.fullmatch(str(value)) is not None


def _days() -> Kind[int]:
    days = whole(1, max(_RETENTIONS))

    def parse(value: Any) -> int:
        if (read := days.parse(value)) not in _RETENTIONS:
            raise ValueError
        return read

    return Kind(parse, f"one of {', '.join(map(str, _RETENTIONS))}")


def _reserved() -> Kind[int]:
    number = whole(0, _MOST_RESERVED)

    def parse(value: Any) -> int:
        if 0 < (read := number.parse(value)) < _LEAST_RESERVED:
            raise ValueError
        return read

    accepted = (
        f"0, or a whole number from {_LEAST_RESERVED} to {_MOST_RESERVED}: ticks come while a pass lasts, and "
        "throttled ones page"
    )
    return Kind(parse, accepted)


def is_alias(key: kms.IKey) -> bool:
    """Whether a key is an alias, which no policy can grant: IAM ignores one in a `Resource`.

    https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html
    """
    return hasattr(key, "alias_name") or ":alias/" in key.key_arn


def _refuse_other_constructs(encryption_key: kms.IKey | None, vpc: ec2.IVpc | None) -> None:
    """Raise SettingsError unless they are a key and a VPC. `isinstance` doesn't work on the CDK's interfaces."""
    if encryption_key is not None and (
        not hasattr(encryption_key, "key_arn") or is_alias(encryption_key)
    ):
        raise SettingsError(
            [Fault(setting="encryption_key", seen=encryption_key, accepted=ANY_KEY)]
        )
    if vpc is not None and not hasattr(vpc, "private_subnets"):
        accepted = "a VPC: `ec2.Vpc.from_lookup` makes one of an id"
        raise SettingsError([Fault(setting="vpc", seen=vpc, accepted=accepted)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Safeguards:
    """Every setting with its default, range and unit. Get checked ones by ``parse``.

    An app that has constructs gives them to ``Safeguards.of``: its own key then gets the statements that it needs.
    """

    encryption_key_arn: str = setting(
        "", _one(KEY_ARN, "the ARN of a KMS key (not of an alias)"), "of all that the stack makes"
    )
    vpc_id: str = setting("", _one(_VPC, "the id of a VPC"), "the network of the function")
    vpc_subnet_ids: tuple[str, ...] = setting(
        (), _several(_SUBNET, "ids of subnets", _MAX_SUBNETS), "of vpc_id"
    )
    vpc_security_group_ids: tuple[str, ...] = setting(
        (),
        _several(_SECURITY_GROUP, "ids of security groups", _MAX_SECURITY_GROUPS),
        "of vpc_id; instead of one that lets HTTPS out",
    )
    log_retention_days: int = setting(30, _days(), "days that logs are kept")
    reserved_concurrency: int = setting(
        0, _reserved(), "invocations of a re-drive function at once, 0 to reserve none"
    )

    #: The construct of `encryption_key_arn`, if the app has it.
    given_key: kms.IKey | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        *,
        encryption_key: kms.IKey | None = None,
        vpc: ec2.IVpc | None = None,
        subnets: Sequence[ec2.ISubnet] = (),
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        reserved_concurrency: int = 0,
    ) -> Self:
        """Make safeguards from constructs. Raises SettingsError.

        Without ``subnets``, the function is in the private subnets of ``vpc``, or else in the isolated ones.
        """
        _refuse_other_constructs(encryption_key, vpc)
        there = subnets or ((vpc.private_subnets or vpc.isolated_subnets) if vpc else ())
        days = next((days for days, one in _RETENTIONS.items() if one is log_retention), 0)
        checked = cls.parse(
            {
                "encryption_key_arn": encryption_key.key_arn if encryption_key else "",
                "vpc_id": vpc.vpc_id if vpc else "",
                "vpc_subnet_ids": tuple(one.subnet_id for one in there),
                "vpc_security_group_ids": tuple(one.security_group_id for one in security_groups),
                "log_retention_days": days,
                "reserved_concurrency": reserved_concurrency,
            }
        )
        return replace(checked, given_key=encryption_key)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The settings' names, in the order of the table."""
        return tuple(one.name for one in fields(cls) if one.metadata)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Read ``values`` by setting name. A setting that is left out has its default.

        Other names are ignored. Raises SettingsError listing every fault.
        """
        read, faults = read_fields(cls, values)
        unread = {fault.setting for fault in faults}
        faults += (one for one in _half_a_network(read) if not unread & set(_NETWORK))
        faults += partition_faults("encryption_key_arn", read["encryption_key_arn"])
        if faults:
            raise SettingsError(faults)
        return cls(**read)

    def key(self, scope: Construct, construct_id: str = "EncryptionKey") -> kms.IKey | None:
        """The key as a construct in ``scope``; None for the services' keys."""
        if self.given_key or not self.encryption_key_arn:
            return self.given_key
        return kms.Key.from_key_arn(scope, construct_id, self.encryption_key_arn)

    @property
    def log_retention(self) -> logs.RetentionDays:
        """The retention of logs, as the CDK's type."""
        return _RETENTIONS[self.log_retention_days]


_NETWORK = ("vpc_id", "vpc_subnet_ids", "vpc_security_group_ids")


def _half_a_network(read: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield faults: a VPC without subnets, or settings that need one. The function would silently be outside a VPC."""
    if read["vpc_id"] and not read["vpc_subnet_ids"]:
        yield Fault(
            setting="vpc_subnet_ids", seen=(), accepted="ids of subnets where vpc_id is given"
        )
    for name in _NETWORK[1:]:
        if read[name] and not read["vpc_id"]:
            seen: Sequence[str] = read[name]
            yield Fault(setting=name, seen=",".join(seen), accepted="nothing without vpc_id")
