"""The parts that mirror-descent learners are made of: sets, rewards, steps and executions, and when sets are refreshed."""
