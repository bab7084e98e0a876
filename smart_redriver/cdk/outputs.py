"""The output with which a stack describes each of its re-drivers to the `redrive` command,
which needs no other permission to find its queues.

An output costs nothing, is no resource, and is read by `cloudformation:DescribeStacks`;
docs/adr/0012 compares it with a parameter of SSM.
"""

import re
from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

#: How the name of such an output ends; the command takes what is before it for the queue's name.
_ENDS = "Redriver"


def tell_command(scope: Construct, places: Mapping[str, str], name: str) -> cdk.CfnOutput:
    """Write ``places`` as one object in JSON, under a key that begins with ``name``,
    to the stack that a person deploys.

    A nested stack has a name that nobody types.
    """
    stack = _outermost(scope)
    place = f"RedriverPlaces{scope.node.addr}"
    output = cdk.CfnOutput(stack, place, value=stack.to_json_string(dict(places)))
    output.override_logical_id(f"{name}{_ENDS}")
    return output


def name_of(scope: Construct) -> str:
    """The name of a re-driver by its place in the stack: `Orders` for `Shop/Orders/Redriver` and for
    `Shop/OrdersRedriver`.
    """
    place = scope.node.path.removeprefix(_outermost(scope).node.path)
    return in_capitals(place).removesuffix(_ENDS)


def _outermost(scope: Construct) -> cdk.Stack:
    stack = cdk.Stack.of(scope)
    while stack.nested_stack_parent:
        stack = stack.nested_stack_parent
    return stack


def in_capitals(name: str) -> str:
    """A name as outputs have it, letters and digits: `my-orders` is MyOrders."""
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)
