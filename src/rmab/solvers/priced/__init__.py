"""The priced step: plans softened by the entropy of their decisions, in the H prices of the budget alone."""
