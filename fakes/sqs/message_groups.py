"""The visible messages of a FIFO queue: each group in its order, and the groups in turns.

A message may be received if nothing before it in its group is in flight or delayed; what comes after it does not
matter. (localstack tests/aws/services/sqs, recorded on AWS: test_fifo_group_visibility_extends and its neighbours.)
Which group comes next is not documented: here, the one that has been ready for longest.
"""

from collections import deque
from collections.abc import Iterator

from fakes.sqs.message import Message, Rest


class Group:
    """The messages of one group that rest in a queue, in the order in which they came.

    A message that leaves stays among the entries until it comes to the front. Its stamp shows that it left, so nothing
    is searched.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.is_in_turn = False
        self._entries: deque[tuple[int, Message]] = deque()

    def append(self, message: Message) -> None:
        """Put a message at the end."""
        self._entries.append((message.stay, message))

    def head(self) -> Message | None:
        """The first message, wherever it rests; None if there is none."""
        entries = self._entries
        while entries and entries[0][0] != entries[0][1].stay:
            entries.popleft()
        return entries[0][1] if entries else None

    def visible(self) -> Iterator[Message]:
        """The messages that may be received now, one after another. Nothing may move meanwhile."""
        if self.head() is None:
            return
        for stay, message in self._entries:
            if stay != message.stay:
                continue
            if message.rest is not Rest.VISIBLE:
                return
            yield message


class GroupLines:
    """All groups of a queue, and the turns of those whose first message is visible."""

    def __init__(self) -> None:
        self._groups: dict[str | None, Group] = {}
        self._turns: deque[Group] = deque()

    def join(self, message: Message) -> None:
        """Put an arriving message at the end of its group, visible or not."""
        group = self._groups.get(message.group_id)
        if group is None:
            group = self._groups[message.group_id] = Group(str(message.group_id))
        group.append(message)

    def add(self, message: Message) -> None:
        """Note that a message of a group is visible now."""
        self.look_at(message.group_id)

    def look_at(self, group_id: str | None) -> None:
        """Give a group its turn if any of its messages may be received, and forget it if it has none at all."""
        group = self._groups.get(group_id)
        if group is None:
            return
        head = group.head()
        if head is None:
            del self._groups[group_id]
        elif head.rest is Rest.VISIBLE and not group.is_in_turn:
            group.is_in_turn = True
            self._turns.append(group)

    def next_group(self) -> Group | None:
        """Take the group whose turn it is; None if no message may be received."""
        while self._turns:
            group = self._turns.popleft()
            group.is_in_turn = False
            head = group.head()
            if head is not None and head.rest is Rest.VISIBLE:
                return group
        return None

    def draw(self) -> Message | None:
        """The first message of the group whose turn it is; it keeps its place until it leaves the queue."""
        group = self.next_group()
        return group.head() if group else None
