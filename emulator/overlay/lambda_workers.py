"""Lambda environments: kept after an exception, and logs collected without a guess.

MiniStack differs from AWS in several ways:

- It kills the environment whenever a handler raises; AWS keeps it warm.
- It does not give a function the name of its log group, as AWS does
  (https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html).
- It cannot know when a handler has printed its last line, so it waits for 50 ms of silence after every invocation. Here
  the worker says on stderr when it has finished, just before it answers.
- It ends an invocation by the real clock, which goes on while a busy machine does something else. Functions see their
  remaining time on the virtual clock.
- Its functions' code is not at /var/task. Here variables that name a file there get a path relative to the folder of
  the code, in which the worker starts.
"""

import queue
import time
from contextlib import suppress
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import cloudwatch, lambda_svc

from .flights import flights
from .lambda_logs import END_OF_LOG, NAMES_STREAM
from .patching import wrap

#: A worker's output arrives within this time, or the worker is gone; only a very busy machine takes this long to read
#: it.
_PATIENCE_SECONDS = 60
#: An invocation may take this many times its timeout in real time.
_REAL_PER_VIRTUAL_SECOND = 12
#: The timeout in seconds of a function that has none of its own.
_DEFAULT_TIMEOUT_SECONDS = 3
#: In a worker's configuration: the timeout that its function sees.
_TOLD = "TimeoutThatFunctionsAreTold"

_ANSWER_RAISED = 'json.dumps({"status": "error", "error": str(e), "trace"'
_ANSWER_RAISED_AND_STAYS = 'json.dumps({"status": "ok", "raised": True, "error": str(e), "trace"'
_FIRST_LINE = "    init = json.loads(sys.stdin.readline())\n"
_AT_TASK_ROOT = """
    for name, value in init["env"].items():
        init["env"][name] = value.replace("/var/task/", "")
"""
_STREAM_AND_FIRST_LINE = (
    f"    print({NAMES_STREAM!r} + os.environ['AWS_LAMBDA_LOG_STREAM_NAME'],"
    f" file=sys.__stderr__, flush=True)\n{_FIRST_LINE}{_AT_TASK_ROOT}"
)
_LAST_FLUSH = "        _real_stdout.flush()\n\nrun()"
_END_LOG_AND_FLUSH = (
    f"        print({END_OF_LOG!r}, file=sys.__stderr__, flush=True)\n{_LAST_FLUSH}"
)


def install() -> None:
    _patch_worker_script()
    _collect_logs_until_marker()
    _keep_environment_after_exception()
    _record_every_invocation()
    _give_a_busy_machine_time()
    _tell_functions_of_themselves()


def _patch_worker_script() -> None:
    script = lambda_runtime._PYTHON_WORKER_SCRIPT
    for old, new in (
        (_ANSWER_RAISED, _ANSWER_RAISED_AND_STAYS),
        (_FIRST_LINE, _STREAM_AND_FIRST_LINE),
        (_LAST_FLUSH, _END_LOG_AND_FLUSH),
    ):
        if script.count(old) != 1:
            raise RuntimeError(f"MiniStack's worker script has changed: no single {old!r}")
        script = script.replace(old, new)
    lambda_runtime._PYTHON_WORKER_SCRIPT = script


def _collect_logs_until_marker() -> None:
    def drain(worker: Any) -> str:
        """Return everything that the handler wrote, in order: the marker comes through the same pipe."""
        if worker._proc is None:  # it never says that it has finished, but its pipe ends
            worker._stderr_thread.join(_PATIENCE_SECONDS)
            return _without_marker(worker._drain_stderr())
        lines: list[str] = []
        with suppress(queue.Empty):
            while not lines or not lines[-1].endswith(END_OF_LOG):
                lines.append(worker._stderr_queue.get(timeout=_PATIENCE_SECONDS))
        return _without_marker("\n".join(lines))

    lambda_runtime.Worker._drain_stderr_bounded = drain


def _without_marker(log: str) -> str:
    return log.removesuffix(END_OF_LOG).removesuffix("\n")


def _keep_environment_after_exception() -> None:
    @wrap(lambda_runtime.Worker, "invoke")
    def invoke(run: Any, worker: Any, *args: Any, **kwargs: Any) -> Any:
        """Report success to the worker's keeper, so that it keeps the worker; callers see the error."""
        response = run(worker, *args, **kwargs)
        if response.pop("raised", False):
            response["status"] = "error"
        return response


def _give_a_busy_machine_time() -> None:
    @wrap(lambda_runtime.Worker, "invoke")
    def invoke(run: Any, worker: Any, *args: Any, **kwargs: Any) -> Any:
        given = worker.config
        seconds = given.get("Timeout", _DEFAULT_TIMEOUT_SECONDS)
        worker.config = given | {"Timeout": seconds * _REAL_PER_VIRTUAL_SECOND, _TOLD: seconds}
        try:
            return run(worker, *args, **kwargs)
        finally:
            worker.config = given


def _record_every_invocation() -> None:
    """Record AWS/Lambda metrics for invocations by schedules and queues too, not only for API calls."""
    emit = lambda_svc._emit_lambda_metrics
    lambda_svc._emit_lambda_metrics = _only_throttles

    @wrap(lambda_svc, "_execute_function_dispatch")
    def execute(run: Any, function: Any, config: dict[str, Any], *args: Any) -> Any:
        name = config.get("FunctionName", "unknown")
        with flights.flight(name):
            started = time.time()  # virtual, because a sleeping function is billed for its sleep
            result = run(function, config, *args)
            milliseconds = (time.time() - started) * 1000
            emit(name, milliseconds, bool(result.get("error")), throttle=False)
            return result


def _only_throttles(function_name: str, duration_ms: float, throttle: bool, **_: Any) -> None:
    """Report only throttles: a throttled call is no invocation, and MiniStack's other reports would count twice."""
    if throttle and not duration_ms:
        dimensions = {"FunctionName": function_name}
        cloudwatch.record_metric("AWS/Lambda", "Throttles", 1, "Count", dimensions)


def _tell_functions_of_themselves() -> None:
    @wrap(lambda_runtime, "execution_credentials")
    def environment(credentials_of: Any, config: dict[str, Any]) -> dict[str, str]:
        """Complete a new worker's environment with its function's configuration."""
        group = config.get("LoggingConfig", {}).get("LogGroup")
        default = f"/aws/lambda/{config.get('FunctionName', '')}"
        told = {"AWS_LAMBDA_LOG_GROUP_NAME": group or default}
        if _TOLD in config:
            told["_LAMBDA_TIMEOUT"] = str(config[_TOLD])
        return credentials_of(config) | told
