"""How the values of options are read: each of these is a `type` for argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable

#: More than any option needs.
_MOST_DIGITS = 100


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number of this range."""

    def read(text: str) -> int:
        # Digits of other scripts are decimal, too; and Python reads no more than some thousands of digits.
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        if not is_number or not low <= int(text) <= high:
            message = f"{text!r} is not a whole number from {low} to {high}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return read


def number(low: float, high: float) -> Callable[[str], float]:
    """A number of this range; NaN is in none."""

    def read(text: str) -> float:
        message = f"{text!r} is not a number from {low:g} to {high:g}"
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(message) from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(message)
        return value

    return read


def flapping(text: str) -> tuple[float, float]:
    """Minutes up and minutes down, as in 10/10."""
    up, slash, down = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not minutes up and minutes down, as in 10/10"
        )
    read = number(0.2, 1440)
    return read(up), read(down)
