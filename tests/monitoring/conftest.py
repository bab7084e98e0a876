"""Synthesized alarms and dashboards, and series to evaluate them on."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.synthesized import of_cloudwatch, synthesize
from tests.monitoring.given import Given

Synthesize = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def synth() -> Synthesize:
    """The template for some context keys, as `cdk synth -c name=value` makes it,
    with all alarms unless said otherwise.
    """
    made: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}

    def once(**context: str) -> dict[str, Any]:
        context = {"alarms": "all", **context}
        key = tuple(sorted(context.items()))
        if key not in made:
            made[key] = synthesize(**context)
        return made[key]

    return once


@pytest.fixture(scope="session")
def template(synth: Synthesize) -> dict[str, Any]:
    """By default settings."""
    return synth()


@pytest.fixture(scope="session")
def resources(template: dict[str, Any]) -> dict[str, Any]:
    """Its alarms and dashboards, with references resolved to names."""
    return of_cloudwatch(template)


@pytest.fixture
def given(resources: dict[str, Any]) -> Given:
    """Series for the alarms of default settings."""
    return Given(resources)


@pytest.fixture
def given_with(synth: Synthesize) -> Callable[..., Given]:
    """Series for the alarms of other settings."""
    return lambda **context: Given(of_cloudwatch(synth(**context)))
