"""What the function is told at cold start: settings and places, and all that is wrong with either at once."""

from __future__ import annotations

from collections.abc import Mapping

from redrive.deployment import Deployment
from redrive.errors import Fault, SettingsError
from redrive.settings import Settings


def read_environment(env: Mapping[str, str]) -> tuple[Settings, Deployment]:
    """The settings and the places in the function's environment.

    Raises SettingsError listing every fault of both, so that a person mends them in one go.
    """
    faults: list[Fault] = []
    try:
        settings = Settings.from_env(env)
    except SettingsError as error:
        faults += error.faults
    try:
        deployment = Deployment.from_env(env)
    except SettingsError as error:
        faults += error.faults
    if faults:
        raise SettingsError(faults)
    return settings, deployment
