"""From the builder's callbacks to the main stream."""
