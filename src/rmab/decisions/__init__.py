"""From indices and rules to a list: who gets an intervention, why, and with what probability."""
