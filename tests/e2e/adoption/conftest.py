"""An application that existed before, adopted, on a local AWS that enforces IAM; and its story, played once.

Each queue has live traffic, poison pills, and an outage of its own while the others are well.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from demo.summary import Summary, add_up
from emulator import cdk
from emulator.process import LocalAws
from tests.e2e.adoption.adopted import Adopted, FullOrder, Life, deploy_redriver, deploy_shop

_TICK_MINUTES = 5
_POISON_PILLS = 2
#: From the third failed batch on the circuit is open; this is several ticks more.
_OUTAGE_TICKS = 7
#: Nothing ever took longer; a story that does is told as it ended.
_PATIENCE_TICKS = 40


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
    with LocalAws(enforce_iam=True) as aws:
        cdk.bootstrap(aws)
        shop = deploy_shop(aws)
        redriver = deploy_redriver(aws, shop)
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
    _pass(aws, everyone, ticks=1)
    for down, before in zip(everyone, [None, *everyone], strict=False):
        down.fall()
        down.send(_POISON_PILLS, poison=True)
        _pass(aws, everyone, ticks=1)
        if before:
            before.recover()
        _pass(aws, everyone, ticks=_OUTAGE_TICKS - 2)
    _pass(aws, everyone, ticks=1)
    everyone[-1].recover()
    for _ in range(_PATIENCE_TICKS):
        _pass(aws, everyone, ticks=1, orders=0)
        if all(life.is_drained() for life in everyone):
            return


def _pass(aws: LocalAws, lives: list[Life], *, ticks: int, orders: int = 1) -> None:
    """Let ticks of the schedule pass, with so many orders a minute to every queue."""
    for _ in range(ticks):
        for _ in range(_TICK_MINUTES):
            for life in lives:
                life.send(orders)
            aws.pass_time(60, step=60)
        for life in lives:
            life.look()
