"""Where the AWS console shows what a stack has. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote

from smart_redriver.oncall.stack.deployment import Place

_QUEUE_URL = re.compile(r"https://sqs\.(?P<region>[a-z0-9-]+)\.(?P<domain>amazonaws\.com(\.cn)?)/")


def console_links(place: Place) -> dict[str, str]:
    """Addresses by what they show; none for queues that are not on AWS."""
    found = _QUEUE_URL.match(place.deployment.dlq_url)
    if found is None:
        return {}
    region, home = found["region"], _home(found["region"], found["domain"])

    def page(service: str, fragment: str) -> str:
        return f"https://{home}/{service}/home?region={region}#{fragment}"

    def queue(url: str) -> str:
        return page("sqs/v3", f"/queues/{quote(url, safe='')}")

    links = {
        "DLQ": queue(place.deployment.dlq_url),
        "parking lot": queue(place.deployment.parking_lot_url),
        "alarms": page(
            "cloudwatch", f"alarmsV2:?search={quote(place.alarms_known_as[0], safe='')}"
        ),
        "stack": page("cloudformation", f"/stacks?filteringText={quote(place.stack, safe='')}"),
    }
    if place.function:
        links["function and log"] = page("lambda", f"/functions/{place.function}?tab=monitoring")
    return links


def log_link(place: Place, group: str, stream: str) -> str | None:
    """Where the AWS console shows a log stream; None for what is not on AWS."""
    found = _QUEUE_URL.match(place.deployment.dlq_url)
    if found is None:
        return None
    region, home = found["region"], _home(found["region"], found["domain"])

    def part(
        name: str,
    ) -> str:  # twice quoted, with a dollar: the console reads it out of a fragment
        return quote(quote(name, safe=""), safe="").replace("%", "$")

    address = f"https://{home}/cloudwatch/home?region={region}#logsV2:log-groups/log-group"
    return f"{address}/{part(group)}/log-events/{part(stream)}"


def _home(region: str, domain: str) -> str:
    if domain.endswith(".cn"):
        return f"{region}.console.amazonaws.cn"
    if region.startswith("us-gov-"):
        return "console.amazonaws-us-gov.com"
    return f"{region}.console.aws.amazon.com"
