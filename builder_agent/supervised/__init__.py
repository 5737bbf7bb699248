"""A build in a child process, and the parent that can always end it."""
