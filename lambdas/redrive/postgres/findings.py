"""What the doctor says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at; `advice` says what to do where it is not well. `is_needed`: no pass works without."""

    what: str
    is_well: bool
    advice: str = ""
    is_needed: bool = True
