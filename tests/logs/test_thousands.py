"""Numbers with separators of thousands are refused, in readings and rewards, and decimals are read."""

from pathlib import Path

import pytest

from logs import csv, problems, read

HEADER = "id;week;state;called;pay"
CUT = {"low": 0, "ok": 800, "good": 1000}


def rows(*values: str) -> list[str]:
    return [f"A;{k};{one};1;{one}" for k, one in enumerate(values, 1)]


@pytest.mark.parametrize("column", ["readings", "rewards"])
@pytest.mark.parametrize(
    ("decimal", "values"), [(".", ["987", "1.047", "2.441"]), (".", ["1.047", "2.441"]), (",", ["987", "1,047"])]
)
def test_thousands_are_not_read_as_decimals(tmp_path: Path, column: str, decimal: str, values: list[str]) -> None:
    path = csv(tmp_path, *rows(*values), header=HEADER)
    options = {"states": CUT} if column == "readings" else {"reward": "pay"}
    told = problems(read, path, decimal=decimal, **options)
    assert len(told) == 1
    assert "may be 1047 or 1.047; remove the separators of thousands" in told[0]


def test_a_point_separates_thousands_if_zeros_stand_at_the_end_and_whole_numbers_beside(tmp_path: Path) -> None:
    header = HEADER.replace(";", ",")
    path = csv(tmp_path, *(one.replace(";", ",") for one in rows("987", "1.050", "2.441")), header=header)
    assert "may be 1050 or 1.050" in problems(read, path, reward="pay")[0]


@pytest.mark.parametrize(
    "values",
    [
        ["0.125", "1.047"],  # no thousands begin with 0
        ["1.0470", "2.441"],
        ["1.5", "2.441"],
        ["1047.250", "2.441"],
        ["0.125", "0.875"],
        ["1047", "987"],
        ["-0.125", "1.125"],
    ],
)
@pytest.mark.parametrize("decimal", [".", ","])
def test_decimals_are_read(tmp_path: Path, values: list[str], decimal: str) -> None:
    path = csv(tmp_path, *rows(*(one.replace(".", decimal) for one in values)), header=HEADER)
    log = read(path, reward="pay", states={"low": -1, "ok": 1}, decimal=decimal)
    assert log.reward is not None
    assert log.reward.tolist() == [float(one) for one in values]


def test_three_decimals_are_read_in_a_file_with_commas(tmp_path: Path) -> None:
    for values in (["1.047", "2.441", "12.500"], ["1.047", "2.441", "3"]):
        path = csv(tmp_path, *(one.replace(";", ",") for one in rows(*values)), header=HEADER.replace(";", ","))
        assert read(path, reward="pay").reward is not None


@pytest.mark.parametrize(
    ("decimal", "value", "words"),
    [
        (".", "2,427.6", "remove the separators of thousands: 2427.6"),
        (",", "2,427.6", "remove the separators of thousands: 2427.6, and leave out --decimal , (the decimal sign"),
        (".", "2.427,6", "remove the separators of thousands: 2427,6, and say decimal=',' (--decimal ,)"),
        (",", "2.427,6", "remove the separators of thousands: 2427,6"),
        (".", "1.047.250", "remove the separators of thousands: 1047250"),
        (".", "2 427,5", "remove the separators of thousands: 2427,5, and say decimal=','"),
        (".", "2'427", "remove the separators of thousands: 2427"),
        (".", "2,427", "say decimal=',' (--decimal ,); if the comma separates thousands, remove it"),
        (",", "2.427", "the decimal sign is a comma here; if the point separates thousands, remove it"),
        (".", "10%", "write 0.1 for 10%"),
        (",", "2,5 %", "write 0.025 for 2,5 %"),
    ],
)
def test_advice_is_no_dead_end(tmp_path: Path, decimal: str, value: str, words: str) -> None:
    path = csv(tmp_path, *rows("0", value), header=HEADER)
    told = problems(read, path, reward="pay", states={"low": 0, "ok": 1}, decimal=decimal)
    assert all(one.endswith(words) or words in one for one in told)
    assert words in told[0]


@pytest.mark.parametrize("value", ["high", "1.2.3", "12-11", "%"])
def test_what_is_no_number_gets_no_advice(tmp_path: Path, value: str) -> None:
    told = problems(read, csv(tmp_path, *rows("0", value), header=HEADER), reward="pay")
    assert told == [f"line 3: '{value}' in column 'pay' is not a number"]
