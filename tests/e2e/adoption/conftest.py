"""An application that existed before, adopted, on a local AWS that enforces IAM; and its story, played once.

Each queue has live traffic, poison pills, and an outage of its own while the others are well.
The consumer of the encrypted one reports.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from demo.summary import Summary, add_up
from emulator import cdk
from emulator.process import LocalAws
from tests.e2e.adoption.adopted import (
    Adopted,
    FullOrder,
    Life,
    deploy_redriver,
    deploy_shop,
    let_report,
)
from tests.e2e.checked_aws import checked_aws

_POISON_PILLS = 2
#: Virtual minutes. From the third failed batch on the circuit is open; an outage goes on for a good while after that.
_CALM, _LOOK_EVERY, _OUTAGE = 5, 5, 35
#: Nothing ever took longer; a story that does is told as it ended.
_PATIENCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """All that is deployed, and how every queue's life went."""

    aws: LocalAws
    shop: dict[str, str]
    redriver: dict[str, str]
    lives: dict[str, Life]
    summaries: dict[str, Summary]
    repeats: dict[str, int]
    deploy_log: str


@pytest.fixture(scope="session")
def town() -> Iterator[Town]:
    with checked_aws(enforce_iam=True) as aws:
        cdk.prepare(aws)
        shop = deploy_shop(aws)
        redriver = deploy_redriver(aws, shop, last_chance_seconds="0")
        let_report(aws, shop, redriver, "Orders")
        log = (aws.work_dir / "redriver" / "cdk-deploy.log").read_text()
        lives = {
            "orders": Life(Adopted(aws, redriver, shop, "Orders")),
            "refunds": Life(Adopted(aws, redriver, shop, "Refunds", "Returns")),
            "mails": Life(Adopted(aws, redriver, shop, "Mails", order=FullOrder)),
        }
        _play(aws, lives)
        yield Town(
            aws=aws,
            shop=shop,
            redriver=redriver,
            lives=lives,
            repeats={name: life.stack.repeats() for name, life in lives.items()},
            summaries={name: add_up(life.played, life.stack) for name, life in lives.items()},
            deploy_log=log,
        )


def _play(aws: LocalAws, lives: dict[str, Life]) -> None:
    """One queue after the other falls, each before the one before it is up again."""
    everyone = list(lives.values())
    _pass(aws, everyone, _CALM)
    for down, before in zip(everyone, [None, *everyone], strict=False):
        down.fall()
        down.send(_POISON_PILLS, poison=True)
        _pass(aws, everyone, _CALM)
        if before:
            before.recover()
        _pass(aws, everyone, _OUTAGE - 2 * _CALM)
    _pass(aws, everyone, _CALM)
    everyone[-1].recover()
    for _ in range(0, _PATIENCE, _LOOK_EVERY):
        # Producers go on: on a quiet queue nothing tells poison from an outage.
        _pass(aws, everyone, _LOOK_EVERY)
        if all(life.is_drained() for life in everyone):
            return


def _pass(aws: LocalAws, lives: list[Life], minutes: int) -> None:
    """Let minutes pass, with an order in each to every queue, and look every few of them."""
    for minute in range(1, minutes + 1):
        for life in lives:
            life.send(1)
        aws.pass_time(60, step=60)
        if minute % _LOOK_EVERY == 0:
            for life in lives:
                life.look()
