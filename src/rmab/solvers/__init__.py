"""The numerical solvers, a room each, with its compiled code beside it."""
