"""What every test shares."""

from hypothesis import settings

# A disk's fsync and a busy machine would fail a deadline, not the code under test.
settings.register_profile("enginetrail", deadline=None)
settings.load_profile("enginetrail")
