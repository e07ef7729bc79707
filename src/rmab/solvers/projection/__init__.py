"""The KL projection onto occupancies whose kernels lie in confidence sets, under the budget."""
