"""Counted words, and words that come from elsewhere."""

import logging
import unicodedata

_topics: set[str] = set()


def notify(message: str) -> None:
    """Write a line to the log."""
    logging.getLogger("rmab").warning("rmab: %s", message)


def notify_once(topic: str, message: str) -> None:
    """Write a line to the log, unless this process wrote one of this topic before."""
    if topic not in _topics:
        _topics.add(topic)
        notify(message)


TURNING = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # they change the order of what is read


def many(count: int, word: str) -> str:
    """Return the count and the word, in the plural unless there is one: '1 arm', '2 arms'."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def is_control(letter: str) -> bool:
    """Return whether a letter is none, but does something to a terminal, a file or the reader."""
    return letter in TURNING or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


def escaped(text: str) -> str:
    r"""Return text that a terminal only shows: control characters other than line ends and tabs are written as \x1b."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(one.encode("unicode_escape").decode() if one not in "\n\t" and is_control(one) else one for one in text)
