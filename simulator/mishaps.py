"""Mishaps of the passes of a policy: some run twice, some die, some calls are refused."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from botocore.exceptions import ClientError

from fakes.faults import Call, Crash, Mishap, Wire, die_after, die_before, refuse
from simulator.world import Policy, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishaps:
    """How often each mishap happens.

    Attributes:
        fires_twice: the schedule fires twice each time.
        deaths: share of the passes that die before or after one of their calls, whichever.
        refusals: share of the calls that are throttled.

    """

    fires_twice: bool = False
    deaths: float = 0.0
    refusals: float = 0.0


class BadWire:
    """Puts a policy's calls on a bad wire. Make it before the policy takes its clients from the world."""

    def __init__(self, world: World, mishaps: Mishaps, seed: int) -> None:
        #: Passes that died, and calls that were refused.
        self.deaths = 0
        self.refusals = 0
        self._mishaps = mishaps
        self._rng = Random(seed)
        self._wire = Wire(self._script)
        self._dies_at: int | None = None
        self._calls_last = 1
        self._in_pass = False
        world.lay(self._wire)

    def under(self, policy: Policy) -> Policy:
        """The policy, as the schedule runs it."""
        return _Unlucky(self, policy, times=2 if self._mishaps.fires_twice else 1)

    def carry(self, policy: Policy) -> None:
        """Run one pass. However it ends, the next pass and anyone who looks in between find a working process."""
        dies = self._rng.random() < self._mishaps.deaths
        # The call is drawn among as many as the last pass made. If this pass makes fewer, it lives.
        self._dies_at = self._rng.randrange(self._calls_last) if dies else None
        self._in_pass = True
        try:
            policy.tick()
        except Crash:
            self.deaths += 1
        except ClientError:
            return  # the function failed, as a Lambda may
        finally:
            self._in_pass = False
            self._calls_last = max(1, len(self._wire.calls))
            self._wire.calls.clear()
            self._wire.is_dead = False

    def _script(self, call: Call) -> Mishap | None:
        if not self._in_pass:
            return None
        if call.number == self._dies_at:
            return self._rng.choice((die_before, die_after))
        if self._rng.random() < self._mishaps.refusals:
            self.refusals += 1
            said = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
            return refuse(ClientError(said, call.operation))  # type: ignore[arg-type]  # plain dict
        return None


class _Unlucky:
    def __init__(self, wire: BadWire, policy: Policy, *, times: int) -> None:
        self.every = policy.every
        self._wire = wire
        self._policy = policy
        self._times = times

    def tick(self) -> None:
        for _ in range(self._times):
            self._wire.carry(self._policy)
