"""`doctor` on a function in a VPC: each service has to be reached, by an endpoint that the function can use,
or by a way out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from smart_redriver.oncall.doctor.access import ENDPOINTS
from smart_redriver.oncall.doctor.network import SERVICES
from tests.infrastructure.adopted import REGION
from tests.infrastructure.app_process import ROOT
from tests.oncall.desk import Desk

VPC, SUBNETS, GROUP, DOOR = "vpc-1", ("subnet-1", "subnet-2"), "sg-function", "sg-door"


def interface(service: str) -> dict[str, Any]:
    return {
        "VpcEndpointId": f"vpce-{service}",
        "VpcEndpointType": "Interface",
        "ServiceName": f"com.amazonaws.{REGION}.{service}",
        "State": "available",
        "PrivateDnsEnabled": True,
        "Groups": [{"GroupId": DOOR}],
    }


def gateway(*tables: str) -> dict[str, Any]:
    return {
        "VpcEndpointId": "vpce-dynamodb",
        "VpcEndpointType": "Gateway",
        "ServiceName": f"com.amazonaws.{REGION}.dynamodb",
        "State": "available",
        "RouteTableIds": list(tables),
    }


def table(name: str, *subnets: str, main: bool = False) -> dict[str, Any]:
    associations: list[dict[str, Any]] = [{"SubnetId": one, "Main": False} for one in subnets]
    return {
        "RouteTableId": name,
        "Associations": associations + [{"Main": True}] * main,
        "Routes": [{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"}],
    }


@dataclass
class FakeEc2:
    """A VPC with an endpoint for each service, and no way out."""

    endpoints: list[dict[str, Any]] = field(
        default_factory=lambda: [interface("sqs"), interface("monitoring"), gateway("rtb-main")]
    )
    tables: list[dict[str, Any]] = field(default_factory=lambda: [table("rtb-main", main=True)])
    rule: dict[str, Any] = field(
        default_factory=lambda: {
            "IpProtocol": "tcp",
            "FromPort": 443,
            "ToPort": 443,
            "UserIdGroupPairs": [{"GroupId": GROUP}],
        }
    )

    def describe_vpc_endpoints(self, **_: Any) -> dict[str, Any]:
        return {"VpcEndpoints": self.endpoints}

    def describe_route_tables(self, **_: Any) -> dict[str, Any]:
        return {"RouteTables": self.tables}

    def describe_security_groups(self, *, GroupIds: list[str]) -> dict[str, Any]:  # noqa: N803
        assert GroupIds == [DOOR]
        return {"SecurityGroups": [{"GroupId": DOOR, "IpPermissions": [self.rule]}]}


@pytest.fixture
def vpc(desk: Desk) -> FakeEc2:
    ec2 = FakeEc2()
    desk.clients["ec2"] = ec2
    desk.clients["lambda"].network = {
        "VpcId": VPC,
        "SubnetIds": list(SUBNETS),
        "SecurityGroupIds": [GROUP],
    }
    return ec2


def found(desk: Desk) -> dict[str, str]:
    """What doctor says of each service, by the level that it gives it."""
    (told,) = desk("doctor", "--json").json["queues"]
    return {
        service: f"{one['level']}: {one['what']}"
        for one in told["findings"]
        for service in SERVICES
        if f"reach {service} " in one["what"] or f"reaches {service} " in one["what"]
    }


def test_endpoints_of_all_services_are_enough(desk: Desk, vpc: FakeEc2) -> None:
    assert found(desk) == {
        service: f"good: The function reaches {service} through an endpoint of {VPC}."
        for service in SERVICES
    }


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_without_an_endpoint_is_not_reached(
    desk: Desk, vpc: FakeEc2, service: str
) -> None:
    vpc.endpoints = [one for one in vpc.endpoints if not one["ServiceName"].endswith(service)]

    told = found(desk)

    assert {name for name, what in told.items() if what.startswith("wrong")} == {service}
    assert "there is none" in told[service]


def test_a_queue_that_shares_a_downstream_needs_the_endpoint_by_which_it_tells_others(
    desk: Desk, vpc: FakeEc2
) -> None:
    def told() -> str:
        return " ".join(desk("doctor", "--all").out.split())

    assert "events" not in told()

    desk.redriver.settings = replace(desk.redriver.settings, downstream="payments")
    assert f"The function does not reach events from {VPC}" in told()

    vpc.endpoints.append(interface("events"))
    assert f"The function reaches events through an endpoint of {VPC}" in told()


def test_an_endpoint_without_private_dns_is_of_no_use(desk: Desk, vpc: FakeEc2) -> None:
    vpc.endpoints[0]["PrivateDnsEnabled"] = False

    assert "vpce-sqs has no private DNS" in found(desk)["sqs"]


def test_an_endpoint_that_waits_for_its_acceptance_is_of_no_use(desk: Desk, vpc: FakeEc2) -> None:
    vpc.endpoints[0]["State"] = "pendingAcceptance"

    assert "vpce-sqs is pendingAcceptance" in found(desk)["sqs"]


@pytest.mark.parametrize(
    "change",
    [
        {"UserIdGroupPairs": [{"GroupId": "sg-other"}]},
        {"FromPort": 80, "ToPort": 80},
        {"IpProtocol": "udp"},
    ],
)
def test_an_endpoint_whose_security_group_keeps_the_function_out_is_of_no_use(
    desk: Desk, vpc: FakeEc2, change: dict[str, Any]
) -> None:
    vpc.rule |= change

    assert "lets the function's in on port 443" in found(desk)["monitoring"]
    assert found(desk)["dynamodb"].startswith("good")  # a gateway has no security group


@pytest.mark.parametrize("rule", [{"IpRanges": [{"CidrIp": "10.0.0.0/8"}]}, {"IpProtocol": "-1"}])
def test_a_security_group_may_let_in_by_address_or_everything(
    desk: Desk, vpc: FakeEc2, rule: dict[str, Any]
) -> None:
    vpc.rule |= {"UserIdGroupPairs": [{"GroupId": GROUP}]} | rule

    assert found(desk)["sqs"].startswith("good")


def test_a_gateway_has_to_be_in_the_route_table_of_every_subnet(desk: Desk, vpc: FakeEc2) -> None:
    vpc.tables.append(table("rtb-2", SUBNETS[1]))

    assert "vpce-dynamodb is not in rtb-2" in found(desk)["dynamodb"]


def test_a_way_out_of_every_subnet_is_enough(desk: Desk, vpc: FakeEc2) -> None:
    vpc.endpoints = []
    out = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "active"}
    vpc.tables[0]["Routes"].append(out)

    ran = desk("doctor", "--all")

    assert "each of its subnets has a way out" in " ".join(ran.out.split())
    assert found(desk) == {}


def test_an_internet_gateway_is_no_way_out_for_a_function(desk: Desk, vpc: FakeEc2) -> None:
    vpc.endpoints = []
    out = {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "State": "active"}
    vpc.tables[0]["Routes"].append(out)

    assert {what.partition(":")[0] for what in found(desk).values()} == {"wrong"}


def test_a_function_in_no_vpc_has_nothing_to_look_at(desk: Desk) -> None:
    ran = desk("doctor", "--all")

    assert "The function is in no VPC" in ran.out
    assert not [place for place in desk.asked if place[0].startswith("ec2:")]


def test_an_environment_that_can_not_be_decrypted_is_told_with_its_remedy(desk: Desk) -> None:
    desk.clients["lambda"].environment_error = {"ErrorCode": "AccessDeniedException"}

    ran = desk("status")

    assert "environment can't be decrypted: AccessDeniedException" in " ".join(ran.said.split())


def test_the_endpoints_of_the_docs_are_those_that_are_checked() -> None:
    docs = (ROOT / "docs" / "security.md").read_text()

    # The doctor of worker queues asks for the last one.
    checked = {*SERVICES, *ENDPOINTS.values(), "events", "secretsmanager"}
    named = {one for one in checked if f"| `com.amazonaws.REGION.{one}` |" in docs}
    assert named == checked
    assert docs.count("| `com.amazonaws.REGION.") == len(checked)
