"""What happens in an episode: policies, the simulator, and the feedback that a learner gets."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
