"""Where the processor's time of a pass goes, by whose code it is in."""

from __future__ import annotations

import cProfile
import os
import pstats
from collections import Counter
from unittest.mock import patch

from bench.engine_policies import smart_redriver
from bench.request import Request
from bench.results import Results, Table
from fakes.stand_in import StandIn

LETTERS = 5_000

#: Part of a file's path, and whose code that is; the first that fits.
WHOSE = (
    ("lambdas/redrive/aws/log", "the log"),
    ("smart_redriver/engine/", "the re-driver"),
    ("/fakes/", "the stand-in for AWS"),
    ("/botocore/auth", "botocore: signing"),
    ("/botocore/serialize", "botocore: requests"),
    ("/botocore/parsers", "botocore: answers"),
    ("/botocore/", "botocore: the rest"),
    ("/json/", "JSON"),
    ("/dataclasses", "the re-driver"),
)
REST = "Python's own: built-ins, headers, dates"


def bench(request: Request) -> None:
    """Measure, show, leave."""
    account = {"AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "example"}
    profile = cProfile.Profile()
    with patch.dict(os.environ, account | {"AWS_DEFAULT_REGION": "eu-west-1"}):
        profile.runcall(smart_redriver, StandIn(LETTERS), LETTERS, workers=1)
    spent: Counter[str] = Counter()
    for (path, _, _), (_, _, own_time, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        spent[next((whose for part, whose in WHOSE if part in path), REST)] += own_time
    results = Results(name="profile", title="Where a pass spends its processor time")
    results.figures["seconds"] = dict(spent)
    results.show(
        request,
        Table(
            title=f"{LETTERS:,} letters, one round after the other, at 0 ms a call",
            headings=("code of", "share"),
            rows=[
                [whose, f"{100 * seconds / spent.total():.0f} %"]
                for whose, seconds in spent.most_common()
            ],
            note="Own time under cProfile, which overstates small functions.",
        ),
    )
    results.leave(request)
