"""Entry point: one meaning for each exit code, and no traceback for an error that was meant."""

import signal
import sys
import time
from types import FrameType

EXIT_INTERRUPTED = 130


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(EXIT_INTERRUPTED)


def main() -> None:
    """Run the command and exit.

    0 is success (for verdicts: pass), 1 a fault or the builder's no, 2 wrong usage or unreadable
    input, 3 reject, 4 hold, 130 interrupted; `enginetrail build` adds 124 and 143.
    """
    started_ns = time.monotonic_ns()  # a deadline counts from here, not from after the imports
    # Before the heavy imports: Ctrl-C while they run leaves quietly and with its own code.
    signal.signal(signal.SIGINT, _leave)
    from enginetrail.cli import run  # noqa: PLC0415 # after the handler stands

    code = run(sys.argv[1:], started_ns=started_ns)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what was told stands: a late Ctrl-C changes no exit code
    sys.exit(code)


if __name__ == "__main__":
    main()
