"""Finds names that were meant to be other names: settings as people type them in a context, a list, an environment.

Standard library only: synth and the function both import this.
"""

import difflib
import re
from collections.abc import Iterable

#: Below this likeness (0 to 1) two names are strangers: ``max_delay`` scores 0.69 against
#: ``max_delay_seconds``, names that mean something else stay near 0.6 and below.
_TYPO_LIKENESS = 0.65

#: Where names are everybody's, one is only taken for ours when it is spelt almost like it.
_SLIP_LIKENESS = 0.9
_UNITS = ("_seconds", "_minutes", "_mib")


def misspelt(keys: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Those of ``keys`` that are none of ``names`` but look like one, each with the nearest.

    ``maxAttempts``, ``MAX_ATTEMPTS`` and ``max-attempts`` count as misspelt, too.
    """
    known = tuple(names)
    found = {}
    for key in keys:
        if key in known:
            continue
        if near := difflib.get_close_matches(_snake(key), known, n=1, cutoff=_TYPO_LIKENESS):
            found[key] = near[0]
    return found


def slips(keys: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Those of the `misspelt` that are nearly sure to be: but for a letter, their order, case, or the unit at the end."""
    return {key: name for key, name in misspelt(keys, names).items() if _is_slip(key, name)}


def _is_slip(key: str, name: str) -> bool:
    if "_" in key and any(_snake(key) + unit == name for unit in _UNITS):
        return True
    typed, meant = (re.sub(r"[^a-z0-9]", "", one.lower()) for one in (key, name))
    likeness = difflib.SequenceMatcher(None, typed, meant).ratio()
    return likeness >= _SLIP_LIKENESS or sorted(typed) == sorted(meant)


def _snake(key: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()
