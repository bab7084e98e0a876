"""Draws what the synthesized dashboard shows of scenario 3: `python -m bench.dashboard_picture [FILE]`.

Widgets, places, metrics and statistics are the dashboard's own; the figures are those of a simulated run.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.alarm_states import Alarms, values
from bench.metric_record import MetricRecord, record
from bench.synthesized import of_cloudwatch, synthesize
from emulator.alarm_evaluation import ALARM, OK
from simulator.scenarios import LONG_OUTAGE
from simulator.smart_policy import SmartPolicy

PICTURE = Path("docs/images/dashboard.png")

#: The picture is of this moment: the consumer has been well for two hours, and the DLQ drains.
HOURS_SHOWN = 4.0

_CELLS_ACROSS = 24
_CELL_WIDTH, _CELL_HEIGHT = 0.5, 0.38  # inches
_HOUR = 3600
_PERIOD = 300
_STATE_COLOURS = {OK: "#cdeac0", ALARM: "#f6c1c0"}

Widget = Mapping[str, Any]
#: Label, points by hours, and whether it belongs to the right axis.
_Line = tuple[str, list[tuple[float, float | None]], bool]


def draw(path: Path) -> None:
    """Play scenario 3 and draw the dashboard into this file."""
    resources = of_cloudwatch(synthesize(alarms="all"))
    world = LONG_OUTAGE.world(0)
    policy = SmartPolicy(world, seed=0)
    LONG_OUTAGE.play(world, policy)
    known, started = record(world, policy), world.started.timestamp()
    alarms = Alarms(resources, known)
    for _ in alarms.watch(started, started + HOURS_SHOWN * _HOUR):
        pass
    [body] = [
        one["Properties"]["DashboardBody"]
        for one in resources.values()
        if one["Type"] == "AWS::CloudWatch::Dashboard"
    ]
    with mpl.rc_context({"font.size": 7.0}):
        figure = _draw_widgets(json.loads(body)["widgets"], known, alarms.states, started)
        figure.savefig(path, dpi=100, metadata={"Software": None}, pil_kwargs={"optimize": True})


def _draw_widgets(
    widgets: Sequence[Widget], known: MetricRecord, states: Mapping[str, str], started: float
) -> Figure:
    rows = max(widget["y"] + widget["height"] for widget in widgets)
    figure = Figure(figsize=(_CELLS_ACROSS * _CELL_WIDTH, rows * _CELL_HEIGHT))
    for widget in widgets:
        # Room for a widget's title, the numbers on its axes and its legend.
        is_graph = widget["type"] == "metric"
        left, below, above = (1.2, 1.7, 0.8) if is_graph else (0.2, 0.1, 0.1)
        right = 0.9 if is_graph else 0.2
        place = (
            (widget["x"] + left) / _CELLS_ACROSS,
            1 - (widget["y"] + widget["height"] - below) / rows,
            (widget["width"] - left - right) / _CELLS_ACROSS,
            (widget["height"] - below - above) / rows,
        )
        axes = figure.add_axes(place)
        if is_graph:
            _draw_graph(axes, widget["properties"], known, started)
        else:
            axes.set_axis_off()
            if widget["type"] == "text":
                _draw_text(axes, widget["properties"]["markdown"])
            else:
                _draw_states(axes, widget["properties"], states)
    return figure


def _draw_text(axes: Axes, markdown: str) -> None:
    heading, *rest = re.sub(r"\[([^]]+)\]\([^)]+\)|`", r"\1", markdown).split("\n")
    size = 13 if heading.startswith("# ") else 10
    axes.text(0, 0.95, heading.lstrip("# "), size=size, weight="bold", va="top")
    axes.text(0, 0.3, "\n".join(rest), va="top")


def _draw_states(axes: Axes, properties: Widget, states: Mapping[str, str]) -> None:
    axes.set_title(properties["title"], loc="left", weight="bold", y=0.93, pad=0)
    for number, alarm in enumerate(properties["alarms"]):
        column, row = number % 3, number // 3
        name = alarm.partition("Monitoring")[2][:-8]
        box = {"boxstyle": "round,pad=0.5", "facecolor": _STATE_COLOURS.get(states[alarm], "white")}
        text = f"{name}: {states[alarm]}"
        axes.text(0.01 + column / 3, 0.82 - row * 0.135, text, bbox={**box, "edgecolor": "none"})


def _draw_graph(axes: Axes, properties: Widget, known: MetricRecord, started: float) -> None:
    axes.set_title(properties["title"], loc="left", weight="bold")
    lines = _lines(properties, known, started)
    if properties.get("stacked"):
        filled = [[value or 0 for _, value in points] for _, points, _ in lines]
        names = [name for name, *_ in lines]
        axes.stackplot([at for at, _ in lines[0][1]], filled, labels=names, step="pre", alpha=0.6)
    else:
        _draw_lines(axes, lines)
    _draw_bands(axes, properties.get("annotations", {}).get("horizontal", ()))
    limits = properties.get("yAxis", {}).get("left", {})
    axes.set_ylim(limits.get("min"), limits.get("max"))
    axes.set_xlim(0, HOURS_SHOWN)
    axes.set_ylabel(limits.get("label", ""), labelpad=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.12), frameon=False, fontsize=6, ncols=2)


def _draw_lines(axes: Axes, lines: Sequence[_Line]) -> None:
    beside = axes.twinx() if any(is_right for *_, is_right in lines) else axes
    for number, (name, points, is_right) in enumerate(lines):
        seen = [(at, value) for at, value in points if value is not None]
        hours, heights = zip(*seen, strict=True) if seen else ((), ())
        label = f"{name} (right)" if is_right else name
        style: dict[str, Any] = {"color": f"C{number}", "linewidth": 1.2, "marker": ".", "ms": 2}
        (beside if is_right else axes).plot(hours, heights, label=label, **style)
        if is_right:
            axes.plot([], [], label=label, **style)  # for the one legend
            beside.set_ylim(0, None)


def _draw_bands(axes: Axes, annotations: Sequence[Widget]) -> None:
    tops = [one["value"] for one in annotations[1:]] + [1.0]
    for one, top in zip(annotations, tops, strict=False):
        axes.axhspan(one["value"], top, color=one["color"], alpha=0.15, linewidth=0)
        axes.text(HOURS_SHOWN, one["value"], f"{one['label']} ", ha="right", va="bottom", size=6)


def _lines(properties: Widget, known: MetricRecord, started: float) -> list[_Line]:
    """The visible lines of a graph."""
    rows = [_row(row, number) for number, row in enumerate(properties["metrics"])]
    return [
        (
            options.get("label", query["Id"]),
            _points(query, [q for q, _ in rows], options.get("period", _PERIOD), known, started),
            options.get("yAxis") == "right",
        )
        for query, options in rows
        if options.get("visible", True)
    ]


def _row(row: Sequence[Any], number: int) -> tuple[dict[str, Any], Widget]:
    """A row of a graph as a metric query, and its options."""
    options: Widget = row[-1] if isinstance(row[-1], dict) else {}
    if "expression" in options:
        return {"Id": f"e{number}", "Expression": options["expression"]}, options
    namespace, name, *pairs = [word for word in row if isinstance(word, str)]
    dimensions = zip(pairs[::2], pairs[1::2], strict=True)
    metric = {
        "Namespace": namespace,
        "MetricName": name,
        "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions],
    }
    stat = {"Metric": metric, "Stat": options.get("stat", "Average")}
    return {"Id": options.get("id", name), "MetricStat": stat}, options


def _points(
    query: dict[str, Any],
    together: Sequence[dict[str, Any]],
    period: int,
    known: MetricRecord,
    started: float,
) -> list[tuple[float, float | None]]:
    queries = [{**one, "ReturnData": one is query} for one in together]
    first = started // period * period
    ends = [first + number * period for number in range(int(HOURS_SHOWN * _HOUR // period) + 1)]
    found = values(queries, known, ends, period)
    return [((end - started) / _HOUR, value) for end, value in zip(ends[1:], found, strict=True)]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(target)
