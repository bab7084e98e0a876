"""A benchmark's results: the same rows on the terminal, in Markdown and as JSON; a long table as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table as RichTable

from bench.request import COMMAND, Request, machine

#: Rows of a table that people read on a page; a longer one is for a spreadsheet.
MOST_ROWS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under headings, with a sentence or two that says how to read them."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Results:
    """The results of one benchmark: tables for people, figures for programs, plots by file name."""

    name: str
    title: str
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    plots: list[str] = field(default_factory=list)

    def show(self, request: Request, table: Table) -> None:
        """Print a table now, and keep it."""
        self.tables.append(table)
        shown = RichTable(*table.headings, title=table.title, title_justify="left")
        for row in table.rows:
            shown.add_row(*row)
        request.console.print(shown)

    def leave(self, request: Request) -> None:
        """Write NAME.md, NAME.json and, of long tables, NAME-N.csv where results are wanted."""
        if request.out is None:
            return
        request.out.mkdir(parents=True, exist_ok=True)
        figures = {"machine": machine(), "command": f"{COMMAND} ARGS={self.name}"} | self.figures
        (request.out / f"{self.name}.json").write_text(json.dumps(figures, indent=1) + "\n")
        (request.out / f"{self.name}.md").write_text(self._markdown())
        for name, table in self._long_tables():
            with (request.out / name).open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([table.headings, *table.rows])

    def _long_tables(self) -> Iterator[tuple[str, Table]]:
        for number, table in enumerate(self.tables, start=1):
            if len(table.rows) > MOST_ROWS:
                yield f"{self.name}-{number}.csv", table

    def _markdown(self) -> str:
        about = ", ".join(machine().values())
        parts = [f"# {self.title}", f"`{COMMAND} ARGS={self.name}` on {about}."]
        files = {id(table): name for name, table in self._long_tables()}
        for table in self.tables:
            name = files.get(id(table))
            rows = f"[{len(table.rows)} rows]({name})" if name else _rows(table)
            parts += [f"## {table.title}", rows] + ([table.note] if table.note else [])
        parts += [f"![{plot}]({plot})" for plot in self.plots]
        return "\n\n".join(parts) + "\n"


def _rows(table: Table) -> str:
    lines = [table.headings, ["---"] * len(table.headings), *table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
