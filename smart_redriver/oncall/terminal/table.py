"""Plain columns, as wide as their content: readable in a terminal, a ticket and a chat, and quick to start.

If they are wider than the terminal, each row becomes a few lines of its own. Sentences fold between words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence

from smart_redriver.oncall.terminal.words import cut

_WIDEST = 60
_INDENT = "    "
#: The beginning that a line keeps when it is folded: its indentation, and the name of a fact.
_LEAD = re.compile(r" +(?:[A-Z][\w ]*: +)?|[A-Z][\w ]*: {2,}")
_MOST_LEAD = 20
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    columns: int | None = None,
) -> str:
    """Rows under titles. Columns in `right` hold numbers. `columns` is the most width, if there is a limit."""
    plain = [[_cut(cell) for cell in row] for row in (titles, *rows)]
    widths = [max(len(row[column]) for row in plain) for column in range(len(titles))]
    lines = []
    for row in plain:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    if columns is not None and max(map(len, lines)) > columns:
        lines = [line for row in plain[1:] for line in _folded(titles, row, columns)]
    return "\n".join(lines)


def folded(text: str, columns: int) -> str:
    """Fold each line that is wider than `columns` between words. A longer word stays whole."""
    return "\n".join(part for line in text.split("\n") for part in _fold(line, columns))


def _fold(line: str, columns: int) -> Iterator[str]:
    if _width(line) <= columns:
        yield line
        return
    found = _LEAD.match(line)
    lead = found[0] if found and len(found[0]) <= _MOST_LEAD else ""
    first, *words = line[len(lead) :].split(" ")
    part = lead + first
    for word in words:
        if _width(part) + 1 + _width(word) <= columns:
            part += f" {word}"
        else:
            yield part
            part = " " * len(lead) + word
    yield part


def _width(text: str) -> int:
    return len(_COLOUR.sub("", text))


def folded_command(command: str, columns: int | None, indent: str = "") -> str:
    """Fold a shell command over several lines with continuations, so that a person can copy and run it."""
    line = indent
    lines: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if columns is None or line == indent or len(f"{line} {word} \\") <= columns:
            line += word if line == indent else f" {word}"
        else:
            lines.append(f"{line} \\")
            line = f"{indent}  {word}"
    return "\n".join([*lines, line])


def _folded(titles: Sequence[str], row: Sequence[str], columns: int) -> Iterator[str]:
    """A row as lines: the first cell, and below it the others, each with its title."""
    line = _cut(row[0], columns)
    for title, cell in zip(titles[1:], row[1:], strict=True):
        part = _cut(f"{title.lower()} {cell}", columns - len(_INDENT))
        if len(line) + 2 + len(part) > columns or not line.startswith(_INDENT):
            yield line
            line = _INDENT + part
        else:
            line += f"  {part}"
    yield line


def _cut(cell: str, most: int = _WIDEST) -> str:
    return cut(printable(cell), most)


def printable(text: str) -> str:
    """Return text on one line, without characters that a terminal obeys: letters come from strangers."""
    return "".join(one if one.isprintable() else "�" for one in " ".join(text.split()))


def exact(line: str) -> str:
    """A line as it is, but for characters that nobody sees or a terminal obeys: they are named, as on the page."""
    return "".join(one if one.isprintable() else f"⟦U+{ord(one):04X}⟧" for one in line)


def printable_line(line: str) -> str:
    """A line with its indentation, without anything that a terminal obeys."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    return indent + printable(line)
