"""How EngineTrail is run: services for tests and docs, images, units, dashboards."""
