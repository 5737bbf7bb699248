"""What a policy may say: bounds with their units in the key names. Pure; ``policy_file`` reads files.

A section that is left out gives no permission: what needs it holds with ``empty_policy``. An optional
bound that is left out is not applied.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from analytics.canonical import sha256_of
from build_events.events import CacheMode

Bound = Annotated[float, Field(ge=0)]
Limit = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """Base of all sections: an unknown key, a value of another type, NaN and infinity are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Explainable(Section):
    """When a slow build counts as told from a stuck one."""

    unheard_heartbeats: Annotated[int, Field(ge=1)]  # a silence of more heartbeat intervals needs a heartbeat inside
    max_silence_ms: Bound | None = None  # longest time without a callback


class Measured(Section):
    """Bounds on the legs of a cancellation, each from the request."""

    max_observed_ms: Bound | None = None
    max_returned_ms: Bound | None = None
    max_cleaned_ms: Bound | None = None
    max_exited_ms: Bound | None = None


class CacheSafe(Section):
    """Which uses of a timing cache are allowed."""

    allowed_modes: list[CacheMode]


class Released(Section):
    """How much more than before an embedded build may leave in its process."""

    max_extra_threads: Limit
    max_extra_open_files: Limit
    max_extra_gpu_memory_bytes: Limit


class Sbat(Section):
    """Bounds of the stuck-build acceptance test."""

    explainable: Explainable | None = None
    measured: Measured | None = None
    cache_safe: CacheSafe | None = None
    released: Released | None = None


class Validation(Section):
    """Which validations of an artifact count."""

    kinds: list[Name]  # all of them must pass
    min_samples: Annotated[int, Field(ge=1)]
    runtime_target: Name | None = None  # e.g. sm89; left out: the targets that the engine was built for
    max_age_h: Bound | None = None  # hours between the validation and the as-of time


class Source(Section):
    """What a source must say."""

    refused_revisions: list[Name]  # names that move, compared without case
    allowed_licenses: list[Name] | None = None  # compared without case; left out: licenses are not judged


class Environment(Section):
    """Which environments may build."""

    allowed_tensorrt_versions: list[Name] | None = None  # patterns such as 1.7.*; left out: any


class Bundle(Section):
    """What must have been verified of an artifact."""

    required_checks: list[Name]  # names in artifact.published.checks


class Cbat(Section):
    """Bounds of the checkpoint-to-bundle acceptance test."""

    source: Source | None = None
    environment: Environment | None = None
    bundle: Bundle | None = None


class Policy(Section):
    """One policy file."""

    name: Name = "unnamed"
    sbat: Sbat = Sbat()
    cbat: Cbat = Cbat()
    validation: Validation | None = None

    def content(self) -> dict[str, JsonValue]:
        """Return what the policy says, without what it leaves out."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def sha256(self) -> str:
        """The policy's identity: SHA-256 of the canonical JSON of its content."""
        return sha256_of(self.content())
