"""The main job from end to end on real input: observe, cancel, retry, judge."""
