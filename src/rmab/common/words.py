"""Text: log messages, plurals, and escaping of control characters."""

import logging
import unicodedata

_topics: set[str] = set()


def notify(message: str) -> None:
    """Write a line to the log."""
    logging.getLogger("rmab").warning("rmab: %s", message)


def notify_once(topic: str, message: str) -> None:
    """Write a line to the log, once per process and topic."""
    if topic not in _topics:
        _topics.add(topic)
        notify(message)


BIDIRECTIONAL = (
    "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # characters that change the direction of text
)


def many(count: int, word: str) -> str:
    """Format a count with its noun: '1 arm', '2 arms'."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def is_control(letter: str) -> bool:
    """Return whether this is a control character, or one that changes the direction of text."""
    return letter in BIDIRECTIONAL or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


def escaped(text: str) -> str:
    r"""Escape control characters other than line ends and tabs, as \x1b, so that text is safe on a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(one.encode("unicode_escape").decode() if one not in "\n\t" and is_control(one) else one for one in text)
