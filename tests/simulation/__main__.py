"""``python -m tests.simulation 0:10000``: run seeds on all cores; the first that fails is told with its last steps."""

from __future__ import annotations

import logging
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from rich.progress import track

from tests.simulation.story import Story

_CHUNK = 50
_LAST_STEPS = 40


def failure(seed: int) -> str | None:
    """What goes wrong under a seed."""
    logging.disable(logging.CRITICAL)
    story = Story(seed)
    try:
        story.run()
    except Exception as error:
        steps = "\n".join(story.scheduler.trace[-_LAST_STEPS:])
        return f"{steps}\n\nseed {seed}: {type(error).__name__}: {error}"
    finally:
        logging.disable(logging.NOTSET)
    return None


def main(text: str) -> int:
    """Run a seed, or a range FIRST:LAST."""
    first, _, last = text.partition(":")
    seeds = range(int(first), int(last or int(first) + 1))
    began = time.monotonic()
    with ProcessPoolExecutor() as pool:
        for found in track(pool.map(failure, seeds, chunksize=_CHUNK), "seeds", len(seeds)):
            if found is not None:
                pool.shutdown(cancel_futures=True)
                print(found)
                return 1
    print(f"{len(seeds)} seeds in {time.monotonic() - began:.0f} s: every epoch exactly once, every cut consistent")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
