"""The fluid LP of an infinite horizon and average reward."""
