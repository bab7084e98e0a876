"""The Lambda shell of the widget: environment and clients at cold start, one look per invocation.

CloudWatch invokes it with the rights of whoever looks at the dashboard, and shows the HTML that it answers with.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/add_custom_widget_dashboard.html
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from smart_redriver.engine.config.deployment import read_environment
from smart_redriver.oncall.deployment.aws import Aws, Caller, connect_as
from smart_redriver.oncall.deployment.places import Place
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.widget.page import page_of

#: The text that the console of AWS shows when somebody asks what a widget is for.
DESCRIPTION = """\
### Smart re-driver

The status of one dead-letter queue: circuits with reasons, waiting letters, parked letters by cause. It takes no
parameters and changes nothing; `redrive` on your machine does.
"""

settings, deployment = read_environment(os.environ)
place = Place(stack=os.environ["STACK_NAME"], deployment=deployment)
aws = Aws(connect_as(Caller()))


def lambda_handler(event: object, context: object) -> str:  # noqa: ARG001 - Lambda gives it
    """The page as HTML, or what the widget is for, as Markdown. Whatever can't be read is told on the page."""
    if isinstance(event, Mapping) and event.get("describe"):
        return DESCRIPTION
    return page_of(_session(), settings)


def _session() -> Session:
    options: dict[str, Any] = {"aws": aws, "stack": place.stack, "known_place": place}
    return Session(terminal=Terminal(spared_stack=place.stack), **options)
