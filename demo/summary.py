"""Adds the story up, from what the deployed stack remembers and not from what the re-driver says."""

from collections import Counter
from dataclasses import dataclass

from .stack import DeployedStack
from .story import Played

#: The consumer says so of a delivery whose work it had done before.
_ALREADY_PROCESSED = "message.already_processed"
#: How often one would move everything back who does not look at what becomes of it.
_NAIVE_MINUTES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The account of all orders. Counts are of orders unless said otherwise.

    Attributes:
        processed: those with a COMPLETED record in the consumer's idempotency table.
        hopeless: those that no consumer can ever process.
        parked: those that lie in the parking lot, by their original ids; `parked_for` by the ledger's reason.
        twice: those that are both, which would be a copy too many.
        waiting: messages still in the source queue or the DLQ.
        lost: those that are neither processed nor parked nor can be among those waiting.
        repeated: deliveries that met a COMPLETED record: work that the re-driver would have had done
            twice, were the consumer not idempotent. Deliveries that failed are not repeats, the next one
            is how the work gets done.
        redriven, redriven_in_outage: sends back to the source queue, several for a letter that returned.
        naive_redrives: what moving the whole DLQ back every five minutes of the outage would have sent: the
            sum of the DLQ's depths at those minutes.

    """

    sent: int
    hopeless: int
    processed: int
    parked: int
    parked_for: dict[str, int]
    twice: int
    wrongly_parked: int
    waiting: int
    lost: int
    repeated: int
    redriven: int
    redriven_in_outage: int
    naive_redrives: int
    circuit: str

    @property
    def problems(self) -> tuple[str, ...]:
        """Return each figure that does not add up, in words; empty when the story ended well."""
        checks = {
            f"{self.sent} sent, but {self.processed} processed and {self.parked} parked": (
                self.sent == self.processed + self.parked
            ),
            f"{self.lost} lost": not self.lost,
            f"{self.twice} processed and parked": not self.twice,
            f"{self.wrongly_parked} parked that were not hopeless": not self.wrongly_parked,
            f"{self.hopeless} hopeless, but {self.parked} parked": self.parked == self.hopeless,
            f"{self.waiting} still in a queue": not self.waiting,
            f"the circuit ended {self.circuit}": self.circuit == "CLOSED",
        }
        return tuple(problem for problem, is_fine in checks.items() if not is_fine)


def add_up(played: Played, stack: DeployedStack) -> Summary:
    """The summary of a story, from the queues, tables and logs as they are now."""
    sent = set(played.sent)
    processed = stack.processed() & sent
    parked = set(stack.parked()) & sent
    depths = stack.depths()
    waiting = depths.source + depths.dead_letters
    entries = [stack.state_item(f"MESSAGE#{one}") or {} for one in parked]
    reasons = Counter(str(entry.get("ParkReason")) for entry in entries)
    consumer = Counter(event.name for event in stack.consumer_log().fresh())
    return Summary(
        sent=len(sent),
        hopeless=len(played.hopeless),
        processed=len(processed),
        parked=len(parked),
        parked_for=dict(reasons),
        twice=len(processed & parked),
        wrongly_parked=len(parked - played.hopeless),
        waiting=waiting,
        lost=max(0, len(sent - processed - parked) - waiting),
        repeated=consumer[_ALREADY_PROCESSED],
        redriven=len(played.events("letter.redriven")),
        redriven_in_outage=len(played.during_outage("letter.redriven")),
        naive_redrives=sum(
            seen.depths.dead_letters
            for seen in played.snapshots
            if seen.is_down and seen.minutes % _NAIVE_MINUTES == 0
        ),
        circuit=stack.circuit().state,
    )
