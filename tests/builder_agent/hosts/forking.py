"""A host program that forks inside a run: ``python -m tests.builder_agent.hosts.forking FOLDER``."""

import os
import sys
from pathlib import Path

import builder_agent
from tests import models
from tests.builder_agent.builds import objects


def main(folder: Path) -> None:
    """Fork children that leave the run's body in every way; the parent then builds."""
    pids = []
    with builder_agent.observe(route="host", output=folder / "out.engine", home=folder / "home") as run:
        for way in ("leave", "raise", "exit", "build"):
            pid = os.fork()
            if pid == 0:
                return child(run, way)
            pids.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        run.build(*objects(models.small_model()))
    sys.stdout.write(f"{run.run_id} {codes}\n")
    return None


def child(run: builder_agent.RunSession, way: str) -> None:
    """Leave the body of the run, which is the parent's."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 # for the rest of this process
    if way == "raise":
        raise ValueError(way)
    if way == "exit":
        sys.exit(5)
    if way == "build":
        try:
            run.build(None, None, None)
        except builder_agent.UsageError:
            sys.exit(6)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
