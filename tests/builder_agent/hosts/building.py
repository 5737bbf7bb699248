"""A host program that embeds the agent: builds in the way its arguments say, and prints how it ended.

``python -m tests.builder_agent.hosts.building FOLDER WAY [HANDLER]``; prints ``building`` once the
builder has called back, and at the end one JSON object.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import builder_agent
from tests import models
from tests.builder_agent.builds import objects

LAYERS = 400  # about a second, nearly all of it silent


def main(folder: Path, way: str, handler: str) -> None:
    """Build, and say how it ended; what the run raises goes on."""
    calls: list[int] = []
    if handler == "ignore":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    elif handler == "exit":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    elif handler == "python":
        signal.signal(signal.SIGINT, lambda number, _: calls.append(number))
    run = builder_agent.observe(
        route="host", output=folder / "out.engine", home=folder / "home", signals="signals" in way.split("+")
    )
    raised = "nothing"
    try:
        with run:
            announce(run)
            build(run, way, objects(models.chain_model(LAYERS)))
    except BaseException as error:
        raised = type(error).__name__
        if isinstance(error, SystemExit):
            raise
    finally:
        outcome = run.result.outcome if run.result else None
        say({"run_id": run.run_id, "outcome": outcome, "raised": raised, "handler_calls": len(calls)})


def build(run: builder_agent.RunSession, way: str, built: tuple[Any, Any, Any]) -> None:
    """Build in three lines in this thread, or in the run's own."""
    builder, network, config = built
    if "lines" in way.split("+"):
        config.progress_monitor = run.monitor
        run.save(builder.build_serialized_network(network, config))
    else:
        run.build(builder, network, config)


def announce(run: builder_agent.RunSession) -> None:
    """Print ``building`` from a thread of its own when the first callback came."""

    def wait() -> None:
        while run._recording.monitor is None or not run._recording.monitor.called:
            threading.Event().wait(0.002)
        say("building")

    threading.Thread(target=wait, daemon=True).start()


def say(what: object) -> None:
    """Write one line at once."""
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "default")
