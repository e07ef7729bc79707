"""A learner plays a task: the run, and what it is held against."""
