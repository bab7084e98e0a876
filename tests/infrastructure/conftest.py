"""Stacks synthesized offline with the feature flags of cdk.json, and without bundling."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.redriver_stack import make_stack
from stacks.settings import read_context
from tests.infrastructure.adopted import ACCOUNT, key_arn

#: What a strict account asks for: a key, a network, a boundary, tags, long logs, and how many may run.
STRICT = {
    "encryption_key_arn": key_arn(9),
    "vpc_id": "vpc-0123456789abcdef0",
    "vpc_subnet_ids": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "permissions_boundary_arn": f"arn:aws:iam::{ACCOUNT}:policy/boundary",
    "tags": "team=payments,cost-centre=42",
    "log_retention_days": "365",
    "reserved_concurrency": "2",
}
ROOT = Path(__file__).resolve().parents[2]
FLAGS = json.loads((ROOT / "cdk.json").read_text())["context"]


def make_app(**context: Any) -> cdk.App:
    return cdk.App(context={**FLAGS, "aws:cdk:bundling-stacks": [], **context})


def check_by_the_cdk(app: cdk.App) -> None:
    """Have the templates of an app checked by the CDK's own rules: in tests it does not of itself."""
    cdk.Validations.of(app).add_plugins(_rules_of_the_cdk())


@functools.cache
def _rules_of_the_cdk() -> cdk.CloudFormationValidatePlugin:
    """Made once: its rules take two seconds to be read."""
    return cdk.CloudFormationValidatePlugin()


def synthesize(**context: Any) -> Template:
    app = make_app(**context)
    return Template.from_stack(make_stack(app, read_context(app.node)))


@pytest.fixture(scope="session")
def synth() -> Callable[..., Template]:
    """Synthesize with context keys, as ``cdk synth -c name=value`` does."""
    return synthesize


@pytest.fixture(scope="session")
def template() -> Template:
    """The stack with nothing but defaults."""
    return synthesize()


@pytest.fixture(scope="session")
def sample_template() -> Template:
    """The stack with the example consumer."""
    return synthesize(with_sample_consumer="true")
