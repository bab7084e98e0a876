"""What the second edition's judgement does not show yet: tests that are right, and fail or may fail, with what is known.

Each is an open point of the work, not of the test. It is taken off the list with the change that makes it pass.
"""

_QUIET = "cause not known yet; a guess is that the watch ends before the last chance of pills on a quiet queue"

#: By the end of a test's id: why it is open.
OPEN_POINTS = {
    "tests/e2e/adoption/test_adoption.py::test_every_message_is_processed_or_parked_and_none_is_lost[mails]": _QUIET,
    "tests/e2e/adoption/test_adoption.py::test_exactly_the_poison_pills_are_parked[mails]": _QUIET,
    "tests/e2e/adoption/test_adoption.py::test_a_queues_own_setting_counts_for_that_queue_alone": _QUIET,
    "tests/e2e/adoption/test_adoption.py::test_a_message_with_ten_attributes_is_redriven_and_parked_untouched": _QUIET,
    "test_the_report_tells_that_a_letter_is_near_expiry_a_day_before_it_would_be_late[by-default]": (
        "the guard parks earlier than the first edition's margin: 6 d 10 h are left"
    ),
    "test_where_newcomers_can_be_of_any_age_the_dlq_is_looked_through_once_a_day": (
        "480 letters are received on the first day instead of 240"
    ),
}
