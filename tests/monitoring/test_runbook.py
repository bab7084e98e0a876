"""Every alarm says what it means and what to do first, and its section of the runbook is there."""

import re
import shlex

import pytest
import typer

from bench.synthesized import CDK_JSON
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.oncall.cli import app
from tests.monitoring import reach

RUNBOOK = (CDK_JSON.parent / "docs" / "runbook.md").read_text()
PARTS = ("**Means**", "**Look**", "**Do**", "**Do nothing**")


def anchors(markdown: str) -> list[str]:
    """The anchor of each heading, as GitHub makes it."""
    headings = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def sections(markdown: str) -> dict[str, str]:
    """The text under each heading of the second level, by its anchor."""
    _, *parts = re.split(r"^## ", markdown, flags=re.MULTILINE)
    return {anchors("# " + part)[0]: part for part in parts}


@pytest.fixture(scope="module")
def descriptions() -> dict[str, str]:
    alarms = reach.alarms(reach.synthesize(alarms="all"))
    return {name: alarm["AlarmDescription"] for name, alarm in alarms.items()}


def test_every_alarm_links_to_a_section_of_the_runbook(descriptions: dict[str, str]) -> None:
    known = anchors(RUNBOOK)

    for name, description in descriptions.items():
        [anchor] = re.findall(r"Runbook: docs/runbook\.md#(\S+)$", description)
        assert anchor in known, name


def test_every_section_is_some_alarms_and_no_two_alarms_share_one(
    descriptions: dict[str, str],
) -> None:
    linked = [description.rpartition("#")[2] for description in descriptions.values()]

    assert sorted(linked) == sorted(sections(RUNBOOK))


def test_every_alarm_says_in_a_sentence_what_it_means_and_what_to_do_first(
    descriptions: dict[str, str],
) -> None:
    for name, description in descriptions.items():
        meaning, _, first = description.partition(" First: ")
        assert meaning.endswith("."), name
        assert first, name
        assert "Queue: " in first, name
        # CloudWatch allows no more.
        assert len(description) <= 1024, name


def test_every_alarm_names_the_command_to_run_first(descriptions: dict[str, str]) -> None:
    """A page is read without the runbook at hand. What takes the account's concurrency, no command of ours tells."""
    silent = [
        name
        for name, description in descriptions.items()
        if "`redrive " not in description.partition(" First: ")[2]
    ]

    assert [name.partition("Monitoring")[2][:-8] for name in silent] == ["RedriverThrottled"]


@pytest.mark.parametrize("section", sections(RUNBOOK))
def test_a_section_says_what_it_means_how_to_look_what_to_do_and_when_to_do_nothing(
    section: str,
) -> None:
    text = sections(RUNBOOK)[section]

    found = [text.find(part) for part in PARTS]

    assert -1 not in found
    assert found == sorted(found)


def test_every_link_within_the_runbook_leads_somewhere() -> None:
    known = anchors(RUNBOOK)

    assert set(re.findall(r"\]\(#([^)]+)\)", RUNBOOK)) <= set(known)


def test_every_threshold_it_names_is_a_setting_with_that_default() -> None:
    defaults = {name: getattr(MonitoringSettings(), name) for name in MonitoringSettings.names()}

    named = re.findall(r"`(alarm_[a-z_]+)` \((\d+)\)", RUNBOOK)

    assert {name: float(value) for name, value in named} == {
        name: float(defaults[name]) for name, _ in named
    }
    # All but one, of which the runbook says what it is good for.
    assert {name for name in defaults if name.startswith("alarm_")} - {
        name for name, _ in named
    } == {"alarm_parked_letters"}


def test_every_command_it_tells_to_type_is_one_that_exists(descriptions: dict[str, str]) -> None:
    commands = typer.main.get_command(app)
    text = "\n".join([RUNBOOK, *descriptions.values()])
    typed = {" ".join(one.split()) for one in re.findall(r"`(redrive [^`]+)`", text)}

    assert len(typed) > 10
    for line in typed:
        name, *arguments = shlex.split(line)[1:]
        command = commands.commands[name]  # type: ignore[attr-defined]
        # A bare name is mentioned; one with arguments is to be typed as it stands.
        if arguments:
            command.make_context(name, [*arguments])
