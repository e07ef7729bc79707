"""Counted words."""


def many(count: int, word: str) -> str:
    """Return the count and the word, in the plural unless there is one: '1 arm', '2 arms'."""
    return f"{count} {word}{'' if count == 1 else 's'}"
