"""Plain columns, as wide as what is in them: readable in a terminal, a ticket and a chat, and quick to start."""

from __future__ import annotations

from collections.abc import Collection, Sequence

_WIDEST = 60


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
) -> str:
    """Rows under titles; columns in `right` hold numbers."""
    cut = [[_cut(cell) for cell in row] for row in (titles, *rows)]
    widths = [max(len(row[column]) for row in cut) for column in range(len(titles))]
    lines = []
    for row in cut:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _cut(cell: str) -> str:
    plain = printable(cell)
    return plain if len(plain) <= _WIDEST else plain[: _WIDEST - 1] + "…"


def printable(text: str) -> str:
    """On one line, and with nothing in it that a terminal obeys: letters come from strangers."""
    return "".join(one if one.isprintable() else "�" for one in " ".join(text.split()))


def printable_line(line: str) -> str:
    """A line with its indentation, and nothing that a terminal obeys."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    return indent + printable(line)
