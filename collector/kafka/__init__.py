"""The collector's side of Kafka. Needs ``kafka-python``; nothing else in ``collector`` imports it."""
