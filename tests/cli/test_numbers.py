"""Numbers on the command line: messages say what to write."""

import pytest

from commands import call, refused

POWER = ("power", "--budget", "25", "--arms", "500")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--effect 15", "for 15 points write 0.15"),
        ("--effect 0,15", "write 0.15 for 0,15"),
        ("--effect 15%", "write 0.15 for 15%"),
        ("--effect -0.1", "expected an effect above 0 and below 1, got -0.1"),
        ("--effect inf", "expected a finite number"),
        ("--effect many", "expected a number, got 'many'"),
        ("--effect 0.15 --power 1", "expected a number above 0 and below 1, got 1"),
        ("--effect 0.15 --power 80", "for 80% write 0.8"),
        ("--effect 0.15 --recorded 0", "expected a number above 0 and of at most 1, got 0"),
        ("--effect 0.15 --share 20%", "write 0.2 for 20%"),
        ("--effect 0.15 --rate 2,5", "write 2.5 for 2,5"),
    ],
)
def test_what_to_write_is_said(words: str, told: str) -> None:
    message = refused(*POWER, *words.split())
    assert told in message
    assert "1e+" not in message
    assert "float" not in message


def test_numbers_that_are_right_are_accepted() -> None:
    assert call(*POWER, "--effect", "0.15", "--recorded", "1", "--power", "0.9").exit_code == 0
    assert call(*POWER, "--effect", "15", "--deviation", "20").exit_code == 0
    assert "from 0 to 1, got 20; for 20% write 0.2" in refused("list", "m.npz", "--random-share", "20")
