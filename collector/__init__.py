"""The only writer of DuckDB: takes the event log into the store, and answers read-only SQL while it does."""
