"""Finds names that were meant to be other names: what people type into the context and the queue list."""

import difflib
import re
from collections.abc import Iterable

#: Below this likeness (0 to 1) two names are strangers: ``max_delay`` scores 0.69 against
#: ``max_delay_seconds``, names that mean something else stay near 0.6 and below.
_TYPO_LIKENESS = 0.65


def misspelt(keys: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Those of ``keys`` that are none of ``names`` but look like one, each with the nearest.

    ``maxAttempts``, ``MAX_ATTEMPTS`` and ``max-attempts`` count as misspelt, too.
    """
    known = tuple(names)
    found = {}
    for key in keys:
        snake = re.sub("(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()
        near = difflib.get_close_matches(snake, known, n=1, cutoff=_TYPO_LIKENESS)
        if near and key not in known:
            found[key] = near[0]
    return found
