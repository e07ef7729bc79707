"""What a public project has: a citation, policies, templates and hooks, all true of this version."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import rmab

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def released() -> tuple[str, str]:
    """Version and date of the newest section of the changelog that has both."""
    found = re.search(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.M)
    assert found
    return found[1], found[2]


def test_version_changelog_and_citation_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert released() == (rmab.__version__, str(citation["date-released"]))
    assert citation["version"] == rmab.__version__
    assert citation["license"] == "MIT"
    needed = {"cff-version", "message", "title", "authors"}  # what the format asks for
    assert needed <= citation.keys()
    paper = citation["references"][0]
    assert [one["family-names"] for one in paper["authors"]] == ["Xiong", "Li"]
    assert (paper["year"], paper["type"]) == (2024, "conference-paper")


def test_hooks_download_nothing_and_name_what_there_is() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [one["repo"] for one in config["repos"]] == ["local"]
    for hook in config["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        words = hook["entry"].split()
        assert words[0].startswith(".venv/bin/")
        assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", ".github/pull_request_template.md"]
)
def test_files_of_a_public_project_are_there(name: str) -> None:
    assert len((ROOT / name).read_text().split()) > 50


def test_issue_templates_have_their_heads() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert len(forms) == 3
    for form in forms:
        _, head, body = form.read_text().split("---\n", 2)
        assert {"name", "about"} <= yaml.safe_load(head).keys()
        assert body.strip()


def test_what_contributing_says_to_type_exists() -> None:
    text, makefile = (ROOT / "CONTRIBUTING.md").read_text(), (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`?make ([a-z-]+)", text)) - {"a"}
    assert {"lint", "test", "docs"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target
    for path in re.findall(r"pytest (tests/\S+)", text):
        assert (ROOT / path).exists()


def targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", makefile, re.M))


def test_the_workflow_checks_every_python_and_calls_what_there_is() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    jobs, makefile = workflow["jobs"], (ROOT / "Makefile").read_text()
    steps = {name: [step.get("run", "") for step in job["steps"]] for name, job in jobs.items()}
    called = {name: re.findall(r"make ([a-z-]+)", " ".join(lines)) for name, lines in steps.items()}
    wanted = {"lint": "lint", "test": "test", "docs": "docs", "lowest": "test-lowest", "boundscheck": "boundscheck"}
    assert called == {name: [target] for name, target in wanted.items()}
    assert set(wanted.values()) <= targets(makefile)
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == re.findall(r":: (3\.\d+)", " ".join(classifiers))
    assert workflow["concurrency"]["group"]
    for job in jobs.values():
        assert job["name"]
        (python,) = (step["with"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
        assert python["cache"] == "pip"


def test_the_makefile_names_what_there_is() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split()) == targets(makefile)
    words = ["make", "-n", "-o", ".venv/.ready", "-o", ".venv-lowest/.ready", "test-lowest"]
    printed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = re.findall(r"tests/\S+\.py", printed)
    assert len(files) > 15
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_the_continuous_integration_script_calls_what_there_is() -> None:
    called = re.findall(r"^make ([a-z-]+)", (ROOT / ".ci" / "run").read_text(), re.M)
    assert called == ["test", "docs", "boundscheck", "test-lowest"]
    assert set(called) <= targets((ROOT / "Makefile").read_text())


def test_the_version_can_be_asked_for() -> None:
    """As SECURITY.md tells a reporter to."""
    code = re.search(r'`python -c "(.*?)"`', (ROOT / "SECURITY.md").read_text())
    assert code
    said = subprocess.run([sys.executable, "-c", code[1]], capture_output=True, text=True, check=True).stdout
    assert said.strip() == rmab.__version__
