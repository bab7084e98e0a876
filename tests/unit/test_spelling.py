"""Names that were meant to be settings."""

import pytest

from smart_redriver.engine.config.kinds import misspelt
from smart_redriver.engine.config.settings import Settings


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("max_atempts", "max_attempts"),
        ("max-attempts", "max_attempts"),
        ("maxAttempts", "max_attempts"),
        ("MAX_ATTEMPTS", "max_attempts"),
        ("cool_down", "cool_down_seconds"),
        ("max_delay", "max_delay_seconds"),
        ("schedule", "schedule_minutes"),
    ],
)
def test_a_misspelt_setting_is_found_with_the_nearest_name(key, nearest):
    assert misspelt([key], Settings.names()) == {key: nearest}


def test_right_names_and_other_tools_names_are_not_misspelt():
    others = ["stage", "vpc_id", "team", "environment", "owner", "hosted_zone", "account"]

    assert misspelt([*Settings.names(), *others], Settings.names()) == {}
