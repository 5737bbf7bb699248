"""The composition root: the ``enginetrail`` command, where adapters are chosen and wired."""
