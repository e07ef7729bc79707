"""JSON and TOML from anybody: keys given twice and absurd depth are one line, never a guess, a hang or a crash."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rmab
from commands import call, refused
from rmab.common.files import DEEPEST, parse_json, parse_toml
from rmab.study import Results, Study
from rmab.study.failures import read_failures

DEEP = 100_000
TOML = 'name = "x"\nrounds = 1\n[[tasks]]\nname = "cpap"\n[[learners]]\nname = "random"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is given twice; keep one"),
        ("[" * DEEP + "]" * DEEP, f"nested too deeply; the limit is {DEEPEST} levels"),
        ("[" * DEEP, "nested too deep"),
        ('{"a":' * DEEP + "1" + "}" * DEEP, "nested too deep"),
    ],
)
def test_json_is_refused_in_one_line_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x.json", "study.json", "reward.json"):
        Path(name).write_text(text)
    Path("failures").mkdir()
    Path("failures/x.json").write_text(text)
    with pytest.raises(ValueError, match=said):
        parse_json(text)
    for read in (rmab.Problem.load, rmab.Task.load):
        with pytest.raises(rmab.errors.FileError, match=f"^x.json: not JSON .{said}"):
            read("x.json")
    with pytest.raises(rmab.errors.FileError, match=said):
        Results.open(".")
    assert said in read_failures(Path(), ["x"])[0].message
    assert said in refused("plan", "cpap", "--reward", "reward.json")
    assert call("run", "cpap", "random", "-o", f"x={text}").exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TOML + 'name = "ucmd"\n', "Cannot overwrite a value"),
        (TOML + "[tasks]\n", "Cannot"),
        (TOML + f"options = {{ x = {'[' * DEEP}{']' * DEEP} }}\n", "nested too deep"),
        (TOML + f"options = {'{ x = ' * DEEP}1{'}' * DEEP}\n", "nested too deep"),
        (
            TOML + "options." + "a." * DEEP + "a = 1\n",
            f"nested too deeply: a key with over 1000 levels; the limit is {DEEPEST}",
        ),
        (TOML + "[" + 'a . "b.c" . ' * DEEP + "a]\n", "nested too deep"),
    ],
)
def test_toml_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(rmab.errors.FileError) as caught:
        Study.load(path)
    assert str(caught.value).startswith(f"{path}: not TOML ({said}")
    assert "\n" not in str(caught.value)


def test_the_deepest_level_is_the_same_in_json_and_toml() -> None:
    for level, fits in ((DEEPEST - 1, True), (DEEPEST, False)):
        text = "[" * level + "1" + "]" * level
        for parse, whole in (
            (parse_json, f'{{"a": {text}}}'),
            (parse_toml, f"a = {text}"),
            (parse_toml, "a." * level + "a = 1"),
        ):
            if fits:
                assert parse(whole)
            else:
                with pytest.raises(ValueError, match="nested too deep"):
                    parse(whole)


def test_what_is_in_strings_and_comments_does_not_count() -> None:
    brackets, dots = "[{" * 100, "a." * 100
    assert parse_json(json.dumps({"a": brackets + '"\\"', "b": [brackets]})) == {"a": brackets + '"\\"', "b": [brackets]}
    text = f"""# {brackets}
a = "{brackets}\\"{dots}" # it's {brackets}
b = '{brackets}{dots}"'
c = \"\"\"{brackets}
"x" {dots}\"\"\"
d = '''{brackets}
'x' {dots}'''
e = [{", ".join(["0.5"] * 200)}]
f.g."h.i" = 1
"""
    found = parse_toml(text)
    assert (found["a"], found["c"]) == (f'{brackets}"{dots}', f'{brackets}\n"x" {dots}')
    assert found["f"] == {"g": {"h.i": 1}}


def test_an_archive_with_a_field_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, kind="rmab problem", start=0)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("start.npy", archive.read("start.npy"))
    with pytest.raises(rmab.errors.FileError, match="the key 'start' is given twice"):
        rmab.Problem.load(path)
