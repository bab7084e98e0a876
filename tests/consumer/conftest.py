"""For all tests of the consumer's kit: the same examples every day, and a scene."""

import pytest
from hypothesis import settings

from tests.consumer.scene import Scene

# A red test is red again tomorrow.
settings.register_profile("same_examples", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("same_examples")


@pytest.fixture
def scene() -> Scene:
    return Scene()
