"""What a user should know though nothing is wrong: lines for the log of the library.

They go to standard error unless a program has set up its logging otherwise.
"""

import logging

_topics: set[str] = set()


def notify(message: str) -> None:
    """Write a line to the log."""
    logging.getLogger("rmab").warning("rmab: %s", message)


def notify_once(topic: str, message: str) -> None:
    """Write a line to the log, unless this process wrote one of this topic before."""
    if topic not in _topics:
        _topics.add(topic)
        notify(message)
