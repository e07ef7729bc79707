"""Compiled code of the learners' components."""
