"""Grafana: provisioned data sources and two dashboards."""
