"""What happens in an episode: policies, the simulator, and the feedback that a learner gets."""
