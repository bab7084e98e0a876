"""A batch call is accepted in part: every pattern of accepted and refused entries, for every batch call."""

from collections.abc import Callable, Iterator
from itertools import combinations

import pytest

from fakes.faults import Call, Script, at, fail_entries, leave_undone, on
from smart_redriver.engine.errors import CONTENT_FAULTS
from tests.faults.cases import Cases
from tests.faults.scenes import Scene, a_failed_batch, a_scene, three_of_each

BATCH_CALLS = ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
TABLE_CALLS = ("BatchGetItem", "BatchWriteItem")

#: Codes of single entries that another attempt may get past.
PASSING = {
    "SendMessageBatch": ("InternalError", "RequestThrottled", "KMS.ThrottlingException"),
    "DeleteMessageBatch": ("InternalError", "ReceiptHandleIsInvalid"),
    "ChangeMessageVisibilityBatch": (
        "AWS.SimpleQueueService.MessageNotInflight",
        "ReceiptHandleIsInvalid",
    ),
}

Pattern = frozenset[int]
BUILDS = (three_of_each, a_failed_batch)


def patterns(size: int) -> Iterator[Pattern]:
    """Every non-empty set of positions."""
    for count in range(1, size + 1):
        yield from map(frozenset, combinations(range(size), count))


def batch_calls(build: Callable[[], Scene], *operations: str) -> Iterator[tuple[Call, int]]:
    """The batch calls of the scene's pass, each with its number of entries."""
    wire, _ = build().run_pass()
    for call in wire.calls:
        if call.operation in operations:
            yield call, size_of(call)


def size_of(call: Call) -> int:
    if "Entries" in call.request:
        return len(call.request["Entries"])
    (asked,) = call.request["RequestItems"].values()
    return len(asked["Keys"] if call.operation == "BatchGetItem" else asked)


def check(
    scene: Scene, script: Script, told: tuple[str, str] | None, *, ledger_missed_a_write: bool
) -> list[str]:
    _, report = scene.run_pass(script)
    assert report is not None
    is_told = told is None or scene.is_told(report, *told)
    found = scene.complaints(ledger_missed_a_write=ledger_missed_a_write)
    return found if is_told else [*found, f"not told: {dict(report.faults)}"]


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_entries_that_sqs_refuses_stay_and_the_others_go_on(
    build: Callable[[], Scene], cases: Cases
) -> None:
    for call, size in batch_calls(build, *BATCH_CALLS):
        for pattern in patterns(size):
            for code in PASSING[call.operation]:
                found = check(
                    build(),
                    at({call.number: fail_entries(pattern, code)}),
                    (call.operation, code.rpartition(".")[2]),
                    ledger_missed_a_write=False,
                )

                cases.add("faults", f"{call}: {set(pattern)} {code}", found)

    assert not cases.wrong, str(cases)


@pytest.mark.parametrize("code", sorted(CONTENT_FAULTS))
def test_letters_that_sqs_will_never_take_are_parked_and_the_others_redriven(
    code: str, cases: Cases
) -> None:
    for pattern in patterns(3):
        scene = a_scene()
        scene.post_fresh(3)
        scene.bury()
        scene.set_circuit()
        scene.doomed = {f"fresh-{n}" for n in pattern}

        found = check(
            scene,
            bad_content(scene.doomed, code),
            ("SendMessageBatch", code),
            ledger_missed_a_write=False,
        )

        cases.add("faults", str(set(pattern)), found)

    assert not cases.wrong, str(cases)


def bad_content(bodies: set[str], code: str) -> Script:
    """The source queue never accepts these bodies; the parking lot does."""

    def script(call: Call) -> Callable[..., dict[str, object]] | None:
        if call.operation != "SendMessageBatch" or "parking-lot" in call.request["QueueUrl"]:
            return None
        entries = call.request["Entries"]
        positions = {n for n, entry in enumerate(entries) if entry["MessageBody"] in bodies}
        return fail_entries(positions, code)

    return script


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_what_the_table_leaves_undone_once_is_asked_for_again(
    build: Callable[[], Scene], cases: Cases
) -> None:
    for call, size in batch_calls(build, *TABLE_CALLS):
        for pattern in patterns(min(size, 4)):
            script = at({call.number: leave_undone(pattern)})

            found = check(build(), script, None, ledger_missed_a_write=False)

            cases.add("faults", f"{call}: {set(pattern)}", found)

    assert not cases.wrong, str(cases)


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
@pytest.mark.parametrize(
    ("operation", "code"),
    [("BatchGetItem", "UnprocessedKeys"), ("BatchWriteItem", "UnprocessedItems")],
)
def test_what_the_table_leaves_undone_again_and_again_is_told(
    build: Callable[[], Scene], operation: str, code: str, cases: Cases
) -> None:
    found = check(
        build(), on(operation, leave_undone({0})), (operation, code), ledger_missed_a_write=True
    )

    cases.add("faults", code, found)
    assert not cases.wrong, str(cases)
