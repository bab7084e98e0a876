"""The one clock of a simulated world. It never waits: the driver of the world moves time."""

from datetime import UTC, datetime

START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Time that stands still until it is moved, and never goes back."""

    def __init__(self, start: datetime = START) -> None:
        self._epoch = start.timestamp()

    def now(self) -> datetime:
        """This instant, aware, in UTC."""
        return datetime.fromtimestamp(self._epoch, UTC)

    def time(self) -> float:
        """This instant in seconds since the epoch, as `time.time()` would return it."""
        return self._epoch

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        if seconds < 0:
            message = f"time does not go back: advance({seconds})"
            raise ValueError(message)
        self._epoch += seconds

    def advance_to(self, instant: datetime | float) -> None:
        """Move on to an aware datetime or to seconds since the epoch; now itself is allowed."""
        epoch = instant.timestamp() if isinstance(instant, datetime) else instant
        if epoch < self._epoch:
            message = f"time does not go back: advance_to({instant}) at {self.now().isoformat()}"
            raise ValueError(message)
        self._epoch = epoch
