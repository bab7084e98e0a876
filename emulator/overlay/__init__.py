"""Features that MiniStack lacks, patched in inside its process: `python -m emulator.overlay`.

| module | restores |
|---|---|
| `sqs_send` | limits of a message and of a batch; the trace header of each batch entry |
| `sqs_consume` | outdated receipt handles, visibility, long polls, what the metrics count |
| `sqs_requests` | one lock around all queues |
| `sqs_moves` | StartMessageMoveTask, ListMessageMoveTasks, ListDeadLetterSourceQueues |
| `metrics` | AWS/SQS metrics and embedded metric format (EMF) |
| `alarms` | alarms that look at dimensions, M of N, missing data, metric math and warm-up |
| `cloudformation` | properties that MiniStack drops, composite and metric-math alarms |
| `iam` | authorisation by the right action (batch calls, EventInvokeConfig); signatures under a moved clock |
| `lambda_workers` | environments that survive an exception; logs collected without a wait |
| `lambda_logs` | each line of a log as it is written; filter patterns that match any of their terms |
| `lambda_events` | the queue of asynchronous invocations, its settings and its retries, in virtual time |
| `lambda_failures` | what a failed asynchronous invocation leaves: the event or a record, with its request |
| `flights` | which invocations are under way |
| `turns`, `control` | one deterministic turn of every background loop, and its HTTP door |

Every patch replaces a private function, so `__main__` refuses any other MiniStack release. The modules import
MiniStack, which only exists in the emulator's own environment, and MiniStack is untyped, so mypy leaves this folder
alone.
"""
