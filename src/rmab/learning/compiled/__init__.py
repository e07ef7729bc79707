"""Compiled code of the learners' parts."""
