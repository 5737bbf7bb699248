"""The files of a build: inputs, the artifact, what lies at its target."""
