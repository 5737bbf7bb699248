"""How often a following collector looks at its log."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from build_events.log import Chunk, InMemoryEventLog, Positions
from collector.collect import follow

WAIT_S = 0.5
LOOKS = 4


class WaitingLog(InMemoryEventLog):
    """A log whose every look waits, as for a broker that does not answer."""

    looks = 0

    @override
    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        self.looks += 1
        time.sleep(WAIT_S)
        return super().read(after, max_bytes=max_bytes)


@pytest.mark.quiet
def test_a_look_that_only_waits_is_followed_by_the_next_without_a_long_pause(tmp_path: Path, runtime_dir: Path) -> None:
    """The share of a core that looking may take is counted in work: a log that comes back is noticed at once."""
    log = WaitingLog("log-1")
    began = time.monotonic()
    follow(tmp_path, log, [], runtime_dir=runtime_dir, stop=lambda: log.looks >= LOOKS, housekeeping=lambda: None)
    assert time.monotonic() - began < 2 * LOOKS * WAIT_S
