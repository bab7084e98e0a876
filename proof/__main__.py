"""`python -m proof`: explore every world to its end. Fails if a promise breaks or a search is cut off."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from resource import RUSAGE_CHILDREN, getrusage

from proof.promises import CLAIMS, PROGRESS, PROMISES, Claim, Explored, can_always_end, explore


def main() -> int:
    """Explore on all processors, and print what was found."""
    states, is_good, began = 0, True, time.monotonic()
    with ProcessPoolExecutor() as pool:
        traps = pool.map(can_always_end, PROGRESS)
        for claim, explored in zip(CLAIMS, pool.map(_explored, CLAIMS), strict=True):
            states += explored.states
            holds = explored.is_exhaustive and not explored.broken
            is_good &= holds
            print(
                f"{explored.states:>9,} states  {len(_promised(claim))} promises  "
                f"{'holds' if holds else 'FAILS'}  {claim.world.name}",
                flush=True,
            )
            for promise, way in explored.broken.items():
                print("\n  ".join([f"  broken: {promise}", *way]))
        for world, trap in zip(PROGRESS, traps, strict=True):
            is_good &= trap is None
            print(
                f"{'':>9} can always end  {'holds' if trap is None else 'FAILS'}  {world.name}",
                flush=True,
            )
            print("".join(f"  {step}\n" for step in trap or ()), end="")
    took = f"{time.monotonic() - began:.0f} s, {getrusage(RUSAGE_CHILDREN).ru_utime:.0f} of the processors"
    print(f"{states:,} states in {took}: {'proved' if is_good else 'NOT proved'}")
    return 0 if is_good else 1


def _promised(claim: Claim) -> frozenset[str]:
    return frozenset(one.name for one in PROMISES) - claim.unless


def _explored(claim: Claim) -> Explored:
    return explore(claim.world, _promised(claim))


if __name__ == "__main__":
    sys.exit(main())
