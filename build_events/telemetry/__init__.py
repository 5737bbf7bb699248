"""Spans and metrics as a projection of events: names, shapes and pure functions. Nothing here exports."""
