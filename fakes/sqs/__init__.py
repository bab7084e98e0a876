"""SQS queues, standard and FIFO: the client of one account, and what tests and simulations may know beyond it.

client        send, receive, delete, change visibility, by the rules of `validation` and `receipts`
account       operations on queues: create, attributes, counts, source queues of a DLQ, move tasks
queue         one queue's messages, and how time and receives move them on; `lines` keeps them in order
message       one message, and how it looks in an answer
metrics       a queue's past, for late counts and for CloudWatch
inspection    exact counts, messages and events, without touching anything
"""

from fakes.sqs.client import FakeSqs
from fakes.sqs.inspection import Event
from fakes.sqs.message import Message, Rest
from fakes.sqs.metrics import Counts

__all__ = ["Counts", "Event", "FakeSqs", "Message", "Rest"]
