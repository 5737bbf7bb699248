"""The local log as the spool of another log: handed on by one drainer per stream, then deleted."""
