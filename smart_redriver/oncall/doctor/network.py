"""Checks that a function in a VPC reaches the services that a pass calls: by endpoints, or over the internet.

A pass needs no way to write logs and metrics, because Lambda takes them from the function's output. It needs none to
keys, because SQS and DynamoDB use them on their side.
https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import TargetKind
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.access import endpoints_of
from smart_redriver.oncall.doctor.findings import Finding, check, good, unknown

#: The services for a DLQ in SQS. `monitoring` is CloudWatch metrics.
SERVICES = ("sqs", "dynamodb", "monitoring")
_HTTPS = 443

Resource = Mapping[str, Any]


def check_network(session: Session) -> Iterator[Finding]:
    """Look at endpoints and routes of the function's VPC. Raises Refused and CallFailed."""
    place = session.function_configuration.get("VpcConfig") or {}
    vpc, subnets = place.get("VpcId"), place.get("SubnetIds") or ()
    if not vpc:
        yield good("The function is in no VPC, and reaches AWS as it is.")
        return
    # Built only here, because no service's client takes longer to build.
    ec2 = session.aws.client("ec2")
    here = [{"Name": "vpc-id", "Values": [vpc]}]
    tables = tables_of(ec2.describe_route_tables(Filters=here)["RouteTables"], subnets)
    if tables and all(_leads_out(one) for one in tables):
        yield good(f"The function reaches AWS from {vpc}: each of its subnets has a way out.")
        return
    yield from _check_endpoints(session, vpc, ec2, here, tables)


def _check_endpoints(
    session: Session, vpc: str, ec2: Any, here: list[dict[str, Any]], tables: list[Resource]
) -> Iterator[Finding]:
    """Check the endpoint of each service, for a network with no other way out."""
    place = session.function_configuration["VpcConfig"]
    endpoints = ec2.describe_vpc_endpoints(Filters=here)["VpcEndpoints"]
    doors = sorted({one["GroupId"] for each in endpoints for one in each.get("Groups", ())})
    groups = ec2.describe_security_groups(GroupIds=doors)["SecurityGroups"] if doors else []
    deployment = session.place.deployment
    if any(one.kind is TargetKind.WEB for one in deployment.targets):
        yield unknown(
            f"No subnet of the function has a way out of {vpc}, which web targets outside of it need.",
            "Give its subnets a NAT gateway, unless every web target is inside of the network.",
        )
    for service in services_of(deployment, session.settings):
        yield judge_endpoint(
            service,
            vpc,
            [one for one in endpoints if one["ServiceName"].endswith(f".{service}")],
            tables=[one["RouteTableId"] for one in tables],
            open_doors=_open_to(groups, place.get("SecurityGroupIds") or ()),
        )


def services_of(deployment: Deployment, settings: Settings) -> tuple[str, ...]:
    """The services that a pass calls, by the last words of the endpoints' names."""
    told = ("events",) if settings.downstream else ()
    if deployment.location is None:
        return (*SERVICES, *endpoints_of(deployment), *told)
    return ("dynamodb", *deployment.location.services, *told)


def tables_of(tables: Sequence[Resource], subnets: Iterable[str]) -> list[Resource]:
    """The route table of each subnet: its own, or else the VPC's main one."""
    own = {
        association["SubnetId"]: table
        for table in tables
        for association in table.get("Associations", ())
        if "SubnetId" in association
    }
    main = next((one for one in tables if _is_main(one)), None)
    found = [own.get(subnet, main) for subnet in subnets]
    return [one for one in found if one is not None]


def judge_endpoint(
    service: str,
    vpc: str,
    endpoints: Sequence[Resource],
    *,
    tables: Sequence[str],
    open_doors: Iterable[str],
) -> Finding:
    """Whether the function can use one of the VPC's endpoints for a service."""
    faults = [_fault(one, tables, set(open_doors)) for one in endpoints]
    why = "; ".join(fault for fault in faults if fault) or "there is none"
    return check(
        "" in faults,
        f"The function reaches {service} through an endpoint of {vpc}.",
        f"The function does not reach {service} from {vpc} (endpoints: {why}), and no subnet has a way out.",
        f"Make an endpoint of {service} in {vpc} that its subnets can use; docs/security.md has the list.",
    )


def _fault(endpoint: Resource, tables: Sequence[str], open_doors: set[str]) -> str:
    """The reason why the function can't use an endpoint; empty if it can."""
    name = endpoint["VpcEndpointId"]
    if endpoint.get("State", "").lower() != "available":
        return f"{name} is {endpoint.get('State')}"
    if endpoint["VpcEndpointType"] == "Gateway":
        missing = sorted(set(tables) - set(endpoint.get("RouteTableIds", ())))
        return f"{name} is not in {', '.join(missing)}" if missing else ""
    if not endpoint.get("PrivateDnsEnabled"):
        return f"{name} has no private DNS"
    if not {one["GroupId"] for one in endpoint.get("Groups", ())} & open_doors:
        return f"no security group of {name} lets the function's in on port {_HTTPS}"
    return ""


def _open_to(groups: Sequence[Resource], callers: Iterable[str]) -> set[str]:
    """The security groups that let HTTPS in from the groups in ``callers`` or from any address range.

    It does not check which addresses.
    """
    return {
        group["GroupId"]
        for group in groups
        for rule in group.get("IpPermissions", ())
        if _is_https(rule) and _lets_in(rule, set(callers))
    }


def _is_https(rule: Resource) -> bool:
    if rule["IpProtocol"] == "-1":
        return True
    return bool(rule["IpProtocol"] == "tcp" and rule["FromPort"] <= _HTTPS <= rule["ToPort"])


def _lets_in(rule: Resource, callers: set[str]) -> bool:
    named = {pair["GroupId"] for pair in rule.get("UserIdGroupPairs", ())}
    addresses = ("IpRanges", "Ipv6Ranges", "PrefixListIds")
    return bool(named & callers) or any(rule.get(one) for one in addresses)


def _leads_out(table: Resource) -> bool:
    """Whether a default route leads to where AWS can be reached.

    An internet gateway does not count, because Lambda can't use one.
    """
    ways = ("NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId")
    return any(
        route.get("DestinationCidrBlock") == "0.0.0.0/0"
        and route.get("State") == "active"
        and any(route.get(way) for way in ways)
        for route in table.get("Routes", ())
    )


def _is_main(table: Resource) -> bool:
    return any(association.get("Main") for association in table.get("Associations", ()))
