"""`make prove`: explore every world to its end, in some minutes. Fails if a promise breaks or a search is cut off."""

from __future__ import annotations

import sys
import time

from proof.promises import CLAIMS, PROGRESS, PROMISES, can_always_end, explore


def main() -> int:
    """Explore, and print what was found."""
    states, is_good, began = 0, True, time.monotonic()
    for claim in CLAIMS:
        names = frozenset(one.name for one in PROMISES) - claim.unless
        explored = explore(claim.world, names)
        states += explored.states
        is_good &= explored.is_exhaustive and not explored.broken
        what = "holds" if explored.is_exhaustive and not explored.broken else "FAILS"
        print(
            f"{explored.states:>9,} states  {len(names)} promises  {what}  {claim.world.name}",
            flush=True,
        )
        for promise, way in explored.broken.items():
            print("\n  ".join([f"  broken: {promise}", *way]))
    for world in PROGRESS:
        trap = can_always_end(world)
        is_good &= trap is None
        print(
            f"{'':>9} can always end  {'holds' if trap is None else 'FAILS'}  {world.name}",
            flush=True,
        )
        print("".join(f"  {step}\n" for step in trap or ()), end="")
    took = f"{time.monotonic() - began:.0f} s, {time.process_time():.0f} of the processor"
    print(f"{states:,} states in {took}: {'proved' if is_good else 'NOT proved'}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
