"""The priced step: plans softened by the entropy of their decisions, found in the H prices of the budget."""
