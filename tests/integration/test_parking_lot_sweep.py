"""The sweep of the parking lot, which renews old letters, keeps no letter from the people that it waits for."""

from tests.integration.conftest import FORTNIGHT, Account

LETTERS = 130


def parked(account: Account) -> None:
    for number in range(LETTERS):
        account.sqs.send_message(
            QueueUrl=account.deployment.parking_lot_url, MessageBody=f"parked {number}"
        )


def test_what_stays_is_visible_as_soon_as_the_pass_is_over(account: Account) -> None:
    """It stayed hidden until the pass was surely over: for minutes, and just when the alarm on poison rang."""
    parked(account)

    account.run_pass()

    account.advance(seconds=1)  # moto shows what was released from the next second on
    assert account.counts(account.deployment.parking_lot_url) == (LETTERS, 0)


def test_what_stays_is_met_once_in_a_sweep(account: Account) -> None:
    parked(account)

    account.run_pass()

    account.advance(seconds=1)
    received = {one["Attributes"]["ApproximateReceiveCount"] for one in account.parked()}
    assert received == {"2"}


def test_old_letters_are_renewed_and_the_others_given_back(account: Account) -> None:
    parked(account)
    account.advance(seconds=int(FORTNIGHT) * 0.75)
    for number in range(3):
        account.sqs.send_message(
            QueueUrl=account.deployment.parking_lot_url, MessageBody=f"new {number}"
        )

    report = account.run_pass()

    assert report.renewed == LETTERS
    account.advance(minutes=15)  # renewed ones are delayed, or the sweep would meet them again
    assert account.counts(account.deployment.parking_lot_url) == (LETTERS + 3, 0)
