"""The console's page in a real browser: what it shows, by which keys it is worked, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError
from playwright.sync_api import Page, Route, expect

from fakes.faults import Mishap, refuse
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.reports.outcomes import Result
from tests.browser.axe import violations
from tests.browser.conftest import Open, Seen
from tests.oncall.desk import Desk
from tests.oncall.reported import BILLING, DECLINED, declined, failed, report

Visit = Callable[[Page], None]


def go(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()


def queue(page: Page) -> None:
    page.get_by_role("link", name=SOURCE, exact=True).click()


def letters(page: Page) -> None:
    queue(page)
    go(page, "Letters")
    # The page before has rows, too: its causes.
    listed = page.get_by_role("region", name="Letters", exact=True)
    expect(listed.locator("[data-row]").first).to_be_visible()


def letter(page: Page) -> None:
    letters(page)
    page.locator("[data-row]").first.click()
    expect(page.get_by_role("region", name="Body")).to_be_visible()


def plan(page: Page) -> None:
    letter(page)
    page.get_by_role("button", name="Replay…").click()
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_text("Send them back?")).to_be_visible()


def form(page: Page) -> None:
    queue(page)
    page.get_by_role("button", name="pause…").click()
    expect(page.get_by_label("reason (needed)")).to_be_visible()


def editor(page: Page) -> None:
    letter(page)
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(page.get_by_label("Body", exact=True).last).to_be_visible()


def tab(name: str, look_ahead: str) -> Visit:
    def visit(page: Page) -> None:
        queue(page)
        go(page, name)
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        expect(page.get_by_text(look_ahead).first).to_be_visible()

    return visit


def keys(page: Page) -> None:
    expect(page.get_by_role("link", name=SOURCE, exact=True)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()


VIEWS: dict[str, Visit] = {
    "queues": lambda page: expect(
        page.get_by_role("link", name=SOURCE, exact=True)
    ).to_be_visible(),
    "timeline": tab("Timeline", "Deliveries of the source queue"),
    "causes": tab("Causes", DECLINED),
    "letters": letters,
    "letter": letter,
    "editor": editor,
    "form": form,
    "plan": plan,
    "history": tab("History", "Kept files"),
    "doctor": tab("Doctor", "checks are well"),
    "keys": keys,
}


@pytest.fixture
def incident(desk: Desk) -> Desk:
    """Letters parked with a cause and without, one in the DLQ, and what somebody did."""
    ids = desk.dead_letters('{"order": 1, "price": null}', '{"order": 2, "price": null}')
    report(desk, *(declined(one) for one in ids))
    desk.park('{"order": 3}')
    desk.dead_letters('{"order": 4}')
    desk("pause", "--reason", "migration", "--yes")
    desk("resume", "--yes")
    return desk


def test_the_rate_that_the_consumer_bears_is_drawn_where_one_was_found(
    incident: Desk, open_page: Open
) -> None:
    incident.redriver.tick()
    told = incident.redriver.reports[-1]
    told.circuits[0]["letters_per_second"] = 2.25
    incident.clients["logs"].note(told.to_json())
    page = open_page()

    queue(page)

    drawn = page.get_by_role("img", name="Letters a minute. Now: ")
    expect(drawn).to_have_accessible_name(re.compile(r"that the consumer bears: 135$"))


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:iam::123456789012:root", "root"),
        ("arn:aws:sts::123456789012:assumed-role/OnCall/lee@example.com", "lee@example.com"),
    ],
)
def test_people_see_under_which_name_they_are_on_the_page(
    desk: Desk, open_page: Open, arn: str, name: str
) -> None:
    desk.clients["sts"].arn = arn

    expect(open_page().get_by_title(arn)).to_have_text(name)


def test_a_queue_has_its_name_in_the_list_wherever_it_is_called(
    desk: Desk, open_page: Open
) -> None:
    """Tabs, title and orders named the first target of a DLQ that several share."""
    desk.park("a")
    page = open_page()
    page.route("**/api/about", renamed)
    page.reload()

    queue(page)
    expect(page.get_by_role("navigation", name="Queue").get_by_title(SOURCE)).to_have_text("Shared")
    expect(page).to_have_title("timeline of Shared: Redrive console")
    page.get_by_role("button", name="pause…").click()

    expect(page.get_by_role("heading", name="pause Shared")).to_be_visible()


def renamed(route: Route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, json=answer.json() | {"names": {SOURCE: "Shared"}})


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_a_phone(incident: Desk, open_page: Open, view: str, *, width: int) -> None:
    page = open_page()
    page.set_viewport_size({"width": width, "height": 844})
    VIEWS[view](page)

    wide = page.evaluate("document.documentElement.scrollWidth")

    assert wide <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_view_breaks_a_rule_of_accessibility(
    incident: Desk, open_page: Open, view: str, scheme: str
) -> None:
    page = open_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]

    VIEWS[view](page)

    assert violations(page) == []


def test_nothing_is_asked_of_any_other_host_and_nothing_fails(
    incident: Desk, open_page: Open, seen: Seen
) -> None:
    page = open_page()
    for name in ("Timeline", "Causes", "Letters", "History", "Doctor"):
        queue(page)
        go(page, name)
        page.get_by_role("link", name="All queues").click()

    assert seen.hosts == {page.url.split("/")[2]}
    assert seen.troubles == []


def test_the_token_leaves_the_address_and_stays_with_the_tab(
    incident: Desk, open_page: Open
) -> None:
    page = open_page()
    page.reload()

    expect(page.get_by_role("link", name=SOURCE, exact=True)).to_be_visible()
    assert "token" not in page.url


def test_without_the_token_the_page_says_where_it_is(incident: Desk, open_page: Open) -> None:
    page = open_page(token="guessed")

    expect(page.get_by_role("alert")).to_contain_text(
        "Open the address that `redrive console` printed"
    )


def test_what_a_letter_says_is_text_and_hides_nothing(
    desk: Desk, open_page: Open, seen: Seen
) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>\u202egnp.exe'
    desk.park(hostile)
    page = open_page()

    letter(page)

    body = page.get_by_role("region", name="Body")
    expect(body).to_have_text(hostile.replace("\u202e", "⟦U+202E⟧"))
    assert page.locator("main img, main script").count() == 0
    assert "Redrive console" in page.title()
    assert seen.troubles == []


@pytest.mark.parametrize("by_key", [True, False])
def test_what_its_consumer_logged_is_read_when_asked_for_and_is_text(
    desk: Desk, open_page: Open, seen: Seen, *, by_key: bool
) -> None:
    (message_id,) = failed(desk, "a body", result=Result.PERMANENT, parked_id="a-copy")
    hostile = f"{message_id} <img src=x onerror='document.title=1'>\u202e"
    assert BILLING.log_group is not None
    assert BILLING.log_stream is not None
    desk.logs.write(BILLING.log_group, hostile, stream=BILLING.log_stream)
    page = open_page()

    letters(page)
    page.locator("[data-row]").first.click()
    show = page.get_by_role("button", name="Show what its consumer logged")
    expect(show).to_be_visible()
    assert ("logs:FilterLogEvents", "/aws/lambda/billing") not in seen_logs(desk)
    if by_key:
        page.keyboard.press("g")
    else:
        show.click()

    lines = page.get_by_role("region", name="Log lines")
    expect(lines).to_contain_text(hostile.replace("\u202e", "⟦U+202E⟧"))
    assert page.locator("main img").count() == 0
    assert violations(page) == []
    assert seen.troubles == []


def seen_logs(desk: Desk) -> set[tuple[str, str]]:
    return {one for one in desk.asked if one[0] == "logs:FilterLogEvents"}


def test_a_long_number_is_shown_as_it_is(desk: Desk, open_page: Open) -> None:
    desk.park('{"id": 12345678901234567890, "empty": {}, "list": [1.50, []]}')
    page = open_page()

    letter(page)

    shown = page.get_by_role("region", name="Body").inner_text()
    assert shown == (
        '{\n  "id": 12345678901234567890,\n  "empty": {},\n  "list": [\n    1.50,\n    []\n  ]\n}'
    )


def test_an_incident_is_worked_by_keys_alone(desk: Desk, open_page: Open) -> None:
    desk.park("first", "second")
    page = open_page()
    expect(page.get_by_role("link", name=SOURCE, exact=True)).to_be_visible()

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    page.keyboard.press("l")
    listed = page.get_by_role("region", name="Letters", exact=True)
    expect(listed.locator("[data-row]")).to_have_count(2)
    for key in ("j", "x", "r"):
        page.keyboard.press(key)
    expect(page.get_by_label("reason")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Send them back?")).to_be_visible()
    page.keyboard.press("Tab")
    while page.evaluate("!document.activeElement.matches('[data-yes]')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Replayed 1 letter.")).to_be_visible()
    while page.evaluate("document.activeElement.innerText !== 'Close'"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("[data-row]")).to_have_count(1)
    assert len(desk.bodies(SOURCE)) == 1


FOCUS_AT_QUESTION = """() => new MutationObserver((_, me) => {
    if (!document.querySelector(".question")) return;
    window.focusAtQuestion = document.activeElement.getAttribute("tabindex");
    me.disconnect();
}).observe(document, { childList: true, subtree: true })"""


def test_the_plan_has_the_focus_as_soon_as_its_question_appears(
    desk: Desk, open_page: Open
) -> None:
    desk.park("a")
    page = open_page()
    page.evaluate(FOCUS_AT_QUESTION)

    plan(page)

    assert page.evaluate("window.focusAtQuestion") == "-1"


def test_escape_answers_a_question_with_no(desk: Desk, open_page: Open) -> None:
    desk.park("a")
    page = open_page()

    plan(page)
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("link", name="Orders").click()
    expect(page.get_by_text("Not done")).to_be_visible()
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_a_delete_is_meant_only_when_its_count_is_typed_and_can_be_undone(
    desk: Desk, open_page: Open
) -> None:
    desk.park("a", "b", "c")
    page = open_page()
    letters(page)

    page.get_by_role("button", name="Delete 3…").click()
    page.get_by_role("button", name="Show the plan").click()
    yes = page.get_by_role("button", name="Yes")
    expect(yes).to_be_disabled()
    page.get_by_label("Type 3 to go on").fill("3")
    yes.click()
    expect(page.get_by_text("Deleted 3 letters.")).to_be_visible()
    gone = desk.bodies(PARKING_LOT)
    page.get_by_role("button", name="Undo…").click()
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("Put back 3 letters.")).to_be_visible()

    assert gone == []
    assert desk.bodies(PARKING_LOT) == ["a", "b", "c"]


def test_a_count_that_differs_is_told_and_is_no_answer(desk: Desk, open_page: Open) -> None:
    desk.park("a", "b")
    page = open_page()
    letters(page)

    page.get_by_role("button", name="Delete 2…").click()
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_label("Type 2 to go on").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("3 is not 2: nothing was changed.")
    still = desk.bodies(PARKING_LOT)
    page.get_by_label("Type 2 to go on").fill("2")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Deleted 2 letters.")).to_be_visible()

    assert still == ["a", "b"]


def test_letters_found_by_a_part_of_their_id_have_to_be_chosen(desk: Desk, open_page: Open) -> None:
    first, _ = desk.park("a", "b")
    page = open_page()
    letters(page)

    page.get_by_label("Id", exact=True).fill(first)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("1 found by id: choose from them")).to_be_visible()
    expect(page.get_by_role("button", name="Replay 1…")).to_be_disabled()
    page.get_by_label(f"Choose {first}").click()

    expect(page.get_by_role("button", name="Replay 1…")).to_be_enabled()


def test_letters_are_chosen_in_a_row_and_replayed_together(desk: Desk, open_page: Open) -> None:
    desk.park(*(f"letter {number}" for number in range(9)))
    page = open_page()
    letters(page)

    boxes = page.locator("tbody input[type=checkbox]")
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    page.get_by_role("button", name="Replay 4…").click()
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("Replayed 4 letters.")).to_be_visible()

    assert len(desk.bodies(SOURCE)) == 4


def test_a_thousand_letters_are_in_one_list(desk: Desk, open_page: Open) -> None:
    desk.park(*(f"letter {number}" for number in range(1_000)))
    page = open_page()
    letters(page)

    page.get_by_role("button", name="Show more").click()
    expect(page.locator("[data-row]")).to_have_count(1_000)
    page.get_by_label("Choose all that are shown").click()

    expect(page.get_by_role("button", name="Replay 1,000…")).to_be_visible()
    assert len(set(page.locator("[data-row]").all_inner_texts())) == 1_000


def test_the_page_updates_by_itself(desk: Desk, open_page: Open) -> None:
    desk.park("a")
    page = open_page()
    letters(page)
    page.get_by_role("link", name="All queues").click()
    expect(page.get_by_label("1 parked letter of orders")).to_be_visible()

    desk.park("b")
    page.clock.fast_forward(11_000)

    expect(page.get_by_label("2 parked letters of orders")).to_be_visible()


def test_input_that_makes_no_sense_is_told_beside_what_was_typed(
    desk: Desk, open_page: Open
) -> None:
    desk.park("a")
    page = open_page()
    letters(page)

    page.get_by_text("More filters").click()
    page.get_by_label("Where (JMESPath)").fill("country ==")
    page.get_by_role("button", name="Search").click()

    expect(page.get_by_role("alert")).to_contain_text("is not a JMESPath expression")
    expect(page.get_by_label("Where (JMESPath)")).to_have_value("country ==")


def test_an_order_that_is_refused_can_be_mended(desk: Desk, open_page: Open) -> None:
    desk.park("a")
    page = open_page()
    form(page)

    page.get_by_label("reason (needed)").fill("migration")
    page.get_by_label("for", exact=True).fill("soon")
    page.get_by_role("button", name="Show the plan").click()

    expect(page.get_by_text("'soon' is not a duration.")).to_be_visible()
    assert desk.history() == []


def test_expired_credentials_leave_what_was_seen_and_another_login_goes_on(
    desk: Desk, open_page: Open
) -> None:
    desk.park("a")
    expired = ClientError({"Error": {"Code": "ExpiredToken", "Message": "no"}}, "Any")
    logged_out: list[Mishap] = []
    page = open_page(script=lambda _: logged_out[0] if logged_out else None)
    tab("Causes", "no cause reported")(page)

    logged_out.append(refuse(expired))
    page.clock.fast_forward(16_000)
    expect(page.get_by_role("alert")).to_contain_text(
        "These credentials have expired. Log in again."
    )
    rows = page.locator("[data-row]").count()
    logged_out.clear()
    page.get_by_role("button", name="Try again").click()

    expect(page.get_by_role("alert")).to_have_count(0)
    assert rows == 1


def test_a_stack_that_vanished_is_told(desk: Desk, open_page: Open) -> None:
    desk.clients["cloudformation"].stacks.clear()
    page = open_page()

    expect(page.get_by_role("alert").first).to_contain_text("There is no stack")


def test_a_second_person_is_seen_in_the_plan(desk: Desk, open_page: Open) -> None:
    desk.park("a")
    desk.clients["sts"].arn = "arn:aws:iam::123456789012:user/robin"
    desk("pause", "--reason", "I am at it", "--yes")
    desk.clients["sts"].arn = "arn:aws:iam::123456789012:user/kim"
    page = open_page()

    plan(page)
    expect(page.get_by_role("dialog")).to_contain_text(
        'Paused by robin until somebody resumes it: "I am at it".'
    )
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("All the same?")).to_be_visible()
    page.get_by_role("button", name="No").click()

    expect(page.get_by_role("dialog")).to_contain_text("Nothing was changed.")
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_a_console_for_looking_offers_nothing_else(incident: Desk, open_page: Open) -> None:
    page = open_page(is_read_only=True)

    letter(page)

    expect(page.get_by_text("read-only")).to_be_visible()
    names = page.get_by_role("main").get_by_role("button").all_inner_texts()
    assert set(names) <= {
        "Indented",
        "Copy the command that opens its log",
        "Show what its consumer logged",
    }


def test_keys_can_be_turned_off(desk: Desk, open_page: Open) -> None:
    desk.park("a")
    page = open_page()
    keys(page)
    page.get_by_label("Keys do this").uncheck()
    page.get_by_role("button", name="Close").click()

    page.keyboard.press("?")

    expect(page.get_by_role("dialog")).to_have_count(0)


def test_letters_that_no_ledger_knows_are_peeked_at(desk: Desk, open_page: Open) -> None:
    desk.dead_letters("fresh")
    page = open_page()
    queue(page)
    go(page, "Letters")
    page.get_by_label("Where", exact=True).select_option("dlq")
    page.get_by_role("button", name="Search").click()

    page.get_by_role("button", name="Peek at 50").click()

    expect(page.get_by_text("receive count of 1 letter rose by one")).to_be_visible()
    expect(page.get_by_text("fresh")).to_be_visible()
    assert desk.visible(DLQ) == 1


@pytest.mark.parametrize("view", ["Timeline", "Causes", "Letters", "History", "Doctor"])
def test_every_page_of_a_queue_begins_with_the_headline(
    incident: Desk, open_page: Open, view: str
) -> None:
    page = open_page()
    queue(page)
    go(page, view)

    expect(page.locator("main .headline").first).to_contain_text("1 letter waits.")


def test_a_letter_is_one_line_with_its_short_id_and_what_it_waits_for(
    desk: Desk, open_page: Open
) -> None:
    """A letter took several lines, and showed its cause twice."""
    ids = desk.dead_letters(*(f"letter {number}" for number in range(3)))
    report(desk, *(declined(one) for one in ids))
    desk("open", "--reason", "look at them first", "--yes")
    desk.redriver.tick()
    page = open_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    queue(page)
    go(page, "Letters")
    page.get_by_label("Where", exact=True).select_option("dlq")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("td.waits").first).to_contain_text("the next canary")

    heights = page.locator("tbody tr").evaluate_all("rows => rows.map((one) => one.clientHeight)")
    shown = page.locator("[data-row]").all_inner_texts()

    assert set(shown) <= {one[:8] for one in ids}
    assert max(heights) < 45
    assert page.locator("td.waits").first.inner_text()


def test_keys_open_the_editor_from_the_list_and_escape_leads_back(
    desk: Desk, open_page: Open
) -> None:
    desk.park("first")
    page = open_page()
    letters(page)

    page.keyboard.press("j")
    expect(page.locator("[data-row]").first).to_be_focused()
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Edit")).to_be_visible()
    page.get_by_role("textbox", name="Body").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Edit")).to_have_count(0)
    page.keyboard.press("Escape")

    expect(page.get_by_role("heading", name="Letters")).to_be_visible()


@pytest.mark.parametrize(
    "body", ["crlf\tb\r\nlf\ncr\r\r\n\rend\r", "\r\n␍␎ \u2028\x85\r\n", "\n\u2028plain ␍\n"]
)
def test_the_editor_changes_nothing_but_what_was_typed(
    desk: Desk, open_page: Open, body: str
) -> None:
    """A textarea makes every line end a line feed."""
    desk.park(body)
    page = open_page()
    editor(page)

    page.get_by_role("textbox", name="Body").press("Control+Home")
    page.keyboard.type("Z")
    page.get_by_role("button", name="Send the edited copy…").click()
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Yes").click()

    expect(page.get_by_text("Sent the edited copy of 1 letter.")).to_be_visible()
    assert desk.bodies(SOURCE) == [f"Z{body}"]


def test_the_editor_shows_carriage_returns_and_the_plan_that_one_was_taken_out(
    desk: Desk, open_page: Open
) -> None:
    desk.park("first\r\nsecond\r\n")
    page = open_page()
    editor(page)
    box = page.get_by_role("textbox", name="Body")

    expect(page.get_by_text("␍ stands for a carriage return.")).to_be_visible()
    expect(box).to_have_value("first␍\nsecond␍\n")
    box.fill("first␍\nsecond\n")
    page.get_by_role("button", name="Send the edited copy…").click()
    page.get_by_role("button", name="Show the plan").click()

    said = page.get_by_role("region", name="What the command says")
    expect(said.locator(".removed")).to_have_text("-second⟦U+000D⟧")
    expect(said.locator(".added")).to_have_text("+second")


def test_a_traceback_shows_own_code_and_all_of_it_when_asked(desk: Desk, open_page: Open) -> None:
    """A traceback was cut before its last line and the consumer's own code."""
    (message_id,) = desk.dead_letters("a body")
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "/var/task/app.py", line 3, in handler\n    charge()\n'
        '  File "/opt/python/site-packages/requests/api.py", line 9, in get\n    send()\n'
        "app.Declined: no"
    )
    report(desk, declined(message_id, traceback=traceback))
    desk.park()
    page = open_page()
    letter(page)

    shown = page.get_by_role("region", name="Traceback")
    expect(shown).to_contain_text("charge()")
    expect(shown).not_to_contain_text("requests")
    page.get_by_role("button", name="With 1 frame of libraries").click()
    expect(shown).to_contain_text("requests")


def test_the_doctor_shows_what_is_wrong_first_and_counts_what_is_well(
    desk: Desk, open_page: Open
) -> None:
    page = open_page()
    tab("Doctor", "checks are well")(page)

    expect(page.get_by_text("No pass has ended within the last day")).to_be_visible()
    expect(page.get_by_text("is a standard queue").first).to_be_hidden()
