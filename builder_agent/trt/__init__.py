"""TensorRT as it is found: which package, its objects read back, its errors in its own words."""
