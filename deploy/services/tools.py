"""Programs of this machine: found on PATH, asked for their version, run to build."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.services.errors import BuildFailedError, MissingToolError
from deploy.services.locking import Say

# What a service is given of the caller's environment: settings of the caller's own telemetry stay out.
_PASSED_ON = ("HOME", "JAVA_HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER")
_VERSION_TIMEOUT_S = 30
_LOG_LINES_SHOWN = 15

INSTALL = {
    "go": "Go 1.26 or newer (Debian and Ubuntu: golang-go, where new enough)",
    "java": "a Java 17 runtime or newer (Debian and Ubuntu: openjdk-17-jre-headless)",
    "mvn": "Apache Maven (Debian and Ubuntu: maven)",
}


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs that the caller's PATH leads to."""

    environ: Mapping[str, str]
    say: Say

    def find(self, program: str) -> str | None:
        """Return the path of a program, or None."""
        return shutil.which(program, path=self.environ.get("PATH", ""))

    def require(self, program: str, service: str, otherwise: str) -> str:
        """Return the path of a program that ``service`` cannot do without.

        Raises:
            MissingToolError: it is not on PATH; says what to install, or what else would do.
        """
        found = self.find(program)
        if found is None:
            raise MissingToolError(
                f"{service} needs `{program}`, which is not on PATH: install {INSTALL[program]}, or {otherwise}"
            )
        return found

    def passed_on(self, **more: str) -> dict[str, str]:
        """Return the environment of a service: what it needs of the caller's, and ``more``."""
        return {key: self.environ[key] for key in _PASSED_ON if key in self.environ} | more

    def version(self, command: Sequence[str], pattern: str) -> tuple[int, ...] | None:
        """Return the version that ``command`` prints where ``pattern`` has its group; None if it prints none."""
        try:
            done = subprocess.run(
                command, env=dict(self.environ), capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        match = re.search(pattern, done.stdout + done.stderr)
        return tuple(int(number) for number in match[1].split(".")) if match else None

    def fitting(
        self, program: str, ask: Sequence[str], pattern: str, lowest: tuple[int, ...], below: tuple[int, ...]
    ) -> str | None:
        """Return the path of a program on PATH whose version is at least ``lowest`` and under ``below``."""
        found = self.find(program)
        if found is None:
            return None
        version = self.version((found, *ask), pattern)
        if version is not None and lowest <= version < below:
            return found
        wanted = " up to, not including, ".join(".".join(map(str, bound)) for bound in (lowest, below))
        shown = ".".join(map(str, version)) if version else "unknown"
        self.say(f"{found} is not used: its version is {shown}, wanted is {wanted}")
        return None

    def build(self, command: Sequence[str], *, folder: Path, log: Path, **variables: str) -> None:
        """Run one step of a build in ``folder`` at low priority, its output appended to ``log``.

        Raises:
            BuildFailedError: it did not exit with 0; has its last lines and where the others are.
        """
        environ = {**self.environ, **variables}
        with log.open("ab") as output:
            done = subprocess.run(
                ["nice", "-n", "19", *command],  # noqa: S607 # part of every system; minutes of building stall no one
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            raise BuildFailedError(
                f"`{shlex.join(command)}` ended with {done.returncode}; all its output is in {log}:\n{tail(log)}"
            )


def tail(log: Path) -> str:
    """Return the last lines of a log, indented; empty if there is none."""
    if not log.is_file():
        return ""
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
    return "\n".join(f"    {line}" for line in lines)
