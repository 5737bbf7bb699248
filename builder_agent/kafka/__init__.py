"""Kafka as the log behind the spool. The only place of the agent that imports a Kafka client, and lazily."""
