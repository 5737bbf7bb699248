"""The contract: events, envelope, codec, fold, log ports and the local log.

No network, no DuckDB, no OpenTelemetry, no TensorRT. Import from the modules: this file stays empty
so that reading one event never loads the rest.
"""
