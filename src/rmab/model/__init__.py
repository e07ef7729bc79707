"""What is given: arms, problems, views of them, rewards and adversaries."""
