"""The imports of a cold start, in milliseconds of the processor, each in fresh interpreters."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.request import Request
from bench.results import Results, Table
from fakes.stand_in import DEPLOYMENT
from smart_redriver.engine.config.settings import Settings

LAMBDAS = Path(__file__).resolve().parents[1] / "lambdas"

STEPS = {
    "boto3": "import boto3",
    "and the re-driver's modules": "import boto3; import smart_redriver.engine.passes.redrive_pass, smart_redriver.engine.wiring, "
    "smart_redriver.engine.aws.clients, smart_redriver.engine.aws.metrics, smart_redriver.engine.config.deployment",
    "and two clients: all of the handler": "import redrive.handler",
    "boto3 and the two clients alone": "import boto3; boto3.client('sqs'); boto3.client('dynamodb')",
}
RUNS = 15


def bench(request: Request) -> None:
    """Measure, show, leave."""
    compileall.compile_dir(LAMBDAS, quiet=1)
    results = Results(name="cold-start", title="What a cold start imports")
    runs = 3 if request.is_quick else RUNS
    # In turn, so that a slow moment of the machine meets all of them.
    rounds = [{step: _milliseconds(code) for step, code in STEPS.items()} for _ in range(runs)]
    milliseconds = {step: median(one[step] for one in rounds) for step in STEPS}
    ratios = {step: median(one[step] / one["boto3"] for one in rounds) for step in STEPS}
    results.figures["milliseconds"] = milliseconds
    results.figures["times_boto3"] = ratios
    results.show(
        request,
        Table(
            title=f"Importing, the median of {runs} runs",
            headings=("what", "milliseconds", "x boto3 alone"),
            rows=[
                [what, f"{spent:.0f}", f"{ratios[what]:.2f}"]
                for what, spent in milliseconds.items()
            ],
            note="Processor time, from compiled modules; the four in turn, and the median of the ratios.",
        ),
    )
    results.leave(request)


def _milliseconds(code: str) -> float:
    environment = os.environ | Settings().to_env() | DEPLOYMENT.to_env()
    environment |= {"AWS_DEFAULT_REGION": "eu-west-1", "PYTHONPATH": str(LAMBDAS)}
    timed = f"import time; began = time.process_time(); {code}; print(time.process_time() - began)"
    done = subprocess.run(
        [sys.executable, "-c", timed],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return 1000 * float(done.stdout)
