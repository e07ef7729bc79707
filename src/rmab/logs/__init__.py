"""Logs of programmes: files and tables become a checked `Log`."""
