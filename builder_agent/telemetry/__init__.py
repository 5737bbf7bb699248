"""Exports what the events say: spans and metrics, to where the standard variables ask, never in a build's way."""
