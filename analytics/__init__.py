"""Reads the store and decides: SQL views, acceptance tests, gates, policies, decisions."""
