"""The fixtures of services are for tests everywhere: see ``tests/service_fixtures.py``."""
