"""Shows the story: a live picture on a terminal, plain lines anywhere else."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .event_log import Event
from .story import Snapshot
from .summary import Summary

_DECISIONS_SHOWN = 10
_PARKED_SHOWN = 5
_BAR_WIDTH = 40
_COLOURS = {"CLOSED": "green", "HALF_OPEN": "yellow", "OPEN": "red"}


class View(Protocol):
    """A view that the story is shown on."""

    def show(self, seen: Snapshot) -> None: ...


class PlainView:
    """One line for each chapter, change of a circuit, parked letter, and pass that did something."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapter = ""
        self._held: frozenset[str] = frozenset()

    def show(self, seen: Snapshot) -> None:
        if seen.chapter != self._chapter:
            self._chapter = seen.chapter
            self._print(f"\n{_clock(seen.minutes - 1)}  {seen.chapter}")
        for event in seen.events:
            if told := tell(event):
                self._print(f"{_clock(seen.minutes)}    {told}")
        held = frozenset(seen.circuit.held_causes)
        for told in [*map(tell_held, held - self._held), *map(tell_flows, self._held - held)]:
            self._print(f"{_clock(seen.minutes)}    {told}")
        self._held = held

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveView:
    """Virtual time, queue depths, circuit, parked letters and the last decisions, on one screen.

    `draw` is given each picture.
    """

    def __init__(self, draw: Callable[[RenderableType], object]) -> None:
        self._draw = draw
        self._decisions: deque[str] = deque(maxlen=_DECISIONS_SHOWN)
        self._parked: list[str] = []
        self._deepest = 10

    def show(self, seen: Snapshot) -> None:
        for event in seen.events:
            if told := tell(event):
                self._decisions.append(f"{_clock(seen.minutes)}  {told}")
            if event.name == "letter.parked":
                self._parked.append(_parked(event))
        depths = seen.depths
        self._deepest = max(self._deepest, depths.source, depths.dead_letters, depths.parked)
        self._draw(self._picture(seen))

    def _picture(self, seen: Snapshot) -> RenderableType:
        colour = "red" if seen.is_down else "green"
        title = f"[bold]{_clock(seen.minutes)}[/]  [{colour}]{seen.chapter}[/]"
        parts = Group(self._queues(seen), self._circuit(seen), self._said())
        return Panel(parts, title=title, title_align="left", box=box.ROUNDED)

    def _queues(self, seen: Snapshot) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, depth, colour in (
            ("source queue", seen.depths.source, "cyan"),
            ("dead-letter queue", seen.depths.dead_letters, "red"),
            ("parking lot", seen.depths.parked, "magenta"),
        ):
            bar = ProgressBar(
                total=self._deepest, completed=depth, width=_BAR_WIDTH, complete_style=colour
            )
            table.add_row(name, str(depth).rjust(5), bar)
        table.add_row("orders sent", str(seen.sent).rjust(5), "")
        return table

    def _circuit(self, seen: Snapshot) -> Text:
        circuit = seen.circuit
        text = Text("\ncircuit ")
        text.append(circuit.state, style=f"bold {_COLOURS.get(circuit.state, 'white')}")
        text.append(f"  window {circuit.window or '-'}  {circuit.reason}\n")
        for cause in circuit.held_causes:
            text.append(f"{tell_held(cause)}\n", style="yellow")
        for parked in self._parked[-_PARKED_SHOWN:]:
            text.append(f"parked {parked}\n", style="magenta")
        return text

    def _said(self) -> Text:
        missing = _DECISIONS_SHOWN - len(self._decisions)
        return Text("\n".join([*self._decisions, *[""] * missing]), style="dim", no_wrap=True)


@contextmanager
def open_view(console: Console) -> Iterator[View]:
    """The view that suits where the output goes."""
    if not console.is_terminal:
        yield PlainView(console)
        return
    with Live(console=console, auto_refresh=False) as live:
        yield LiveView(lambda picture: live.update(picture, refresh=True))


def tell(event: Event) -> str | None:
    """One event in words; None for what a viewer need not see."""
    fields = event.fields
    match event.name:
        case "circuit.open" | "circuit.half_open" | "circuit.closed":
            state = event.name.partition(".")[2].upper()
            return f"circuit {fields['before']} -> {state}: {fields['reason']}"
        case "letter.parked":
            return f"parked {_parked(event)}"
        case "batch.judged":
            return f"a batch of {fields['size']} is judged {fields['verdict']}: {fields['reason']}"
        case "outcomes.heard" if fields.get("permanent"):
            return f"the consumer has parked {fields['permanent']} itself: no retry can heal them"
        case "pass.finished" if fields["redriven"]:
            kind = "canary" if fields["circuit_after"] == "HALF_OPEN" else "redriven"
            return f"{kind}: {fields['redriven']} of {fields['depth']} letters, window {fields['window']}"
        case "pass.finished" if fields["outcome"] in ("FAILED", "REFUSED"):
            return f"pass {fields['outcome']}: {fields['reason']}"
        case _:
            return None


def tell_held(cause: str) -> str:
    """That letters of one cause wait together."""
    return f'letters that fail of "{cause}" wait for a canary of theirs'


def tell_flows(cause: str) -> str:
    """That they do no more."""
    return f'letters that failed of "{cause}" wait no longer'


def print_summary(console: Console, summary: Summary) -> None:
    """The account, and what does not add up if anything does not."""
    parked_for = ", ".join(f"{count} {reason}" for reason, count in summary.parked_for.items())
    rows = (
        ("sent", summary.sent, ""),
        ("processed", summary.processed, "the consumer remembers each as done"),
        ("parked", summary.parked, parked_for),
        ("lost", summary.lost, ""),
        ("repeated", summary.repeated, "deliveries of work already done"),
        ("redriven", summary.redriven, "all in all"),
        (
            "  in the outage",
            summary.redriven_in_outage,
            f"moving everything back every five minutes: {summary.naive_redrives}",
        ),
    )
    table = Table.grid(padding=(0, 2))
    for name, number, remark in rows:
        table.add_row(name, str(number).rjust(6), remark)
    console.print("\n", table, sep="")
    _print_verdict(console, summary.problems)


def _print_verdict(console: Console, problems: Sequence[str]) -> None:
    if problems:
        console.print("[bold red]It does not add up:[/] " + "; ".join(problems))
    else:
        console.print("[bold green]It adds up:[/] sent = processed + parked, and nothing is lost.")


def _clock(minutes: int) -> str:
    """Virtual time since the story began."""
    return f"+{minutes // 60:02}:{minutes % 60:02}"


def _parked(event: Event) -> str:
    fields = event.fields
    count = fields["redrive_count"]
    redrives = "1 redrive" if count == 1 else f"{count} redrives"
    return f"{fields['original_id']}: {fields['reason']} after {redrives}"
