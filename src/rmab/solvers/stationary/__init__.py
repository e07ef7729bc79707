"""The fluid LP of an endless horizon and average reward."""
