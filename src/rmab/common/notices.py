"""What a user should know though nothing is wrong: lines for the log of the library.

They go to standard error unless a program has set up its logging otherwise.
"""

import logging

_said: set[str] = set()


def notify(message: str) -> None:
    """Tell the log."""
    logging.getLogger("rmab").warning("rmab: %s", message)


def notify_once(topic: str, message: str) -> None:
    """Tell the log, unless something of this topic was said in this process before."""
    if topic not in _said:
        _said.add(topic)
        notify(message)
