"""Plain columns, as wide as what is in them: readable in a terminal, a ticket and a chat, and quick to start.

Where they are wider than the terminal, each row becomes a few lines of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

_WIDEST = 60
_INDENT = "    "


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    columns: int | None = None,
) -> str:
    """Rows under titles; columns in `right` hold numbers. At most `columns` wide, if there are that few."""
    cut = [[_cut(cell) for cell in row] for row in (titles, *rows)]
    widths = [max(len(row[column]) for row in cut) for column in range(len(titles))]
    lines = []
    for row in cut:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    if columns is not None and max(map(len, lines)) > columns:
        lines = [line for row in cut[1:] for line in _folded(titles, row, columns)]
    return "\n".join(lines)


def _folded(titles: Sequence[str], row: Sequence[str], columns: int) -> Iterator[str]:
    """A row as lines: its first cell, and below it the others, each with its title."""
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
    plain = printable(cell)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def printable(text: str) -> str:
    """On one line, and with nothing in it that a terminal obeys: letters come from strangers."""
    return "".join(one if one.isprintable() else "�" for one in " ".join(text.split()))


def printable_line(line: str) -> str:
    """A line with its indentation, and nothing that a terminal obeys."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    return indent + printable(line)
