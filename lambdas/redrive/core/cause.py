"""Why a consumer failed on a letter, where the consumer said so: an error attribute on the message. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from redrive.core.letter import Attribute

#: Names under which consumers and frameworks attach an error, compared without case and punctuation: the kind
#: of error before its text, which differs from letter to letter.
ERROR_NAMES = (
    "errortype",
    "errorcode",
    "exceptiontype",
    "exceptionclass",
    "exception",
    "error",
    "errormessage",
    "exceptionmessage",
    "failurereason",
)

#: Enough to tell errors apart; an entry of the ledger should stay below two write units of 1 KB.
ERROR_LENGTH = 120

#: Characters of a cause. A circuit keeps some of them for each batch that is out, and its item must stay small.
CAUSE_LENGTH = 100


def error_of(attributes: Mapping[str, Attribute]) -> str | None:
    """What the first of the known error attributes says, on one line; None where there is none.

    A mere number says less than any text: Lambda gives its letters an HTTP status beside the error's message.
    """
    plain = {"".join(filter(str.isalnum, name)).lower(): name for name in attributes}
    texts = [attributes[plain[one]].get("StringValue") for one in ERROR_NAMES if one in plain]
    told = [" ".join(text.split())[:ERROR_LENGTH] for text in texts if text and text.strip()]
    return min(told, key=str.isdecimal, default=None)
