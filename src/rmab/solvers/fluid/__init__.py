"""The fluid LP of an episode, with known kernels or over boxes of them."""
