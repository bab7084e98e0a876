"""What the docs name exists: every link leads somewhere, and every command that they print can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from bench.play_options import parse
from smart_redriver.oncall.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(page: Path) -> None:
    broken = [
        f"{target}#{anchor}"
        for target, anchor in links(page)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]

    assert broken == []


def printed() -> Iterator[tuple[str, ...]]:
    """The lines of the docs that a person is to type, in words."""
    for page in PAGES:
        for block in _FENCE.findall(page.read_text()):
            for line in re.findall(
                r"^(?:\$ )?((?:redrive|make|python -m) .+)$", block, re.MULTILINE
            ):
                yield tuple(shlex.split(line, comments=True))


LINES = sorted(set(printed()))


@pytest.mark.parametrize(
    "words", [one for one in LINES if one[0] == "redrive"], ids=lambda words: " ".join(words)
)
def test_every_command_of_the_docs_is_understood(words: tuple[str, ...]) -> None:
    if words[1:] == ("--install-completion",):
        return  # an option of the whole program, which would change the shell's own files
    name, *arguments = words[1:]

    context = COMMANDS[name].make_context(name, list(arguments))

    assert context.info_name == name


@pytest.mark.parametrize(
    "words", [one for one in LINES if one[0] == "make"], ids=lambda words: " ".join(words)
)
def test_every_target_of_the_docs_is_in_the_makefile(words: tuple[str, ...]) -> None:
    assert words[1] in TARGETS


@pytest.mark.parametrize(
    "words",
    [one for one in LINES if one[:3] == ("python", "-m", "bench.play")],
    ids=lambda words: " ".join(words),
)
def test_every_question_of_the_docs_can_be_played(words: tuple[str, ...]) -> None:
    assert parse(words[3:]).scenario.letters > 0
