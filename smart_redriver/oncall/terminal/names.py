"""Names that CloudFormation and the stack made, as people say them.

`SmartRedriver-QueuesDeadLetterA4947A69-1X2Y3Z` is what the template calls QueuesDeadLetter: it is spoken of as
DeadLetter. The stack's own source queue has the stack's id in its name, and is spoken of as Source. Standard library
only.
"""

from __future__ import annotations

import re
from functools import cache

#: What comes before tells that the name is a part of something longer, an ARN or an address.
_ALONE = r"(?<![\w:/.-])"
_HASHES = r"[0-9A-F]{8}-[A-Za-z0-9]+(?![\w-])"
_STACK_ID = "-".join(f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12))
#: See `smart_redriver.cdk.queues`, which makes it.
_OWN_SOURCE = re.compile(rf"{_ALONE}\w+-(Source)-{_STACK_ID}(?![\w-])")


def shortened(text: str, stack: str) -> str:
    """The text with the names that were made for `stack` cut to their sense; ARNs and addresses stay."""
    return _OWN_SOURCE.sub(r"\1", _made_in(stack).sub(r"\1", text))


@cache
def _made_in(stack: str) -> re.Pattern[str]:
    return re.compile(rf"{_ALONE}{re.escape(stack)}-(?:Queues)?([A-Za-z]\w*?){_HASHES}")
