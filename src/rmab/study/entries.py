"""The entries of a study: its tasks and learners, as data."""

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from rmab.common.files import SUFFIXES
from rmab.common.words import is_control
from rmab.model.adversaries import STRONGER
from rmab.model.adversary import FORESEES
from rmab.model.view import FeedbackMode

Value = bool | int | float | str
Given = JsonValue  # a list or a table, too, or nothing


def readable(text: str) -> str:
    """Return a name or label; ValueError where it holds control characters, which no table, file or figure can show."""
    if wrong := next(filter(is_control, text), None):
        raise ValueError(f"must have no control characters, found {wrong.encode('unicode_escape').decode()}")
    return text


Text = Annotated[str, AfterValidator(readable)]


class TaskSpec(BaseModel):
    """A task of a study.

    Parameters
    ----------
    name : str
        As `rmab.make_task` takes it: a built-in name, `module:maker` of your own, or the path of a task file.
    label : str, optional
        What tables and figures call it; the name by default.
    options : dict, optional
        Options of the task.
    rounds : int, optional
        The most that are played of it, for tasks that take long; all rounds of the study by default.
    digest : str, optional
        SHA-256 of a task file, taken when the study is made: what counts is the content, not the path.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Text = Field(min_length=1)
    label: Text = Field(min_length=1)
    options: dict[str, Given] = {}
    rounds: int | None = Field(None, ge=1)
    digest: str = ""

    @property
    def stronger(self) -> str:
        """What makes its adversary, if it is a built-in one, stronger than the paper's; empty if nothing does."""
        return FORESEES if self.name.partition("@")[2] in STRONGER else ""

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if not isinstance(given.get("name"), str):
            return {"label": "?", **given}  # what is wrong is the name
        name, found = given["name"], {}
        if Path(name).suffix in SUFFIXES and not given.get("digest"):
            try:
                found["digest"] = sha256(Path(name).read_bytes()).hexdigest()
            except OSError as error:
                raise ValueError(f"{name}: cannot be read ({error.strerror or error})") from error
        return {"label": Path(name).stem if found else name, **given, **found}


class LearnerSpec(BaseModel):
    """A learner of a study.

    Parameters
    ----------
    name : str
        As `rmab.make_learner` takes it: a built-in name, or `module:maker` of your own.
    label : str, optional
        What tables and figures call it; name, options and feedback by default.
    options : dict, optional
        Options of the learner.
    feedback : {'bandit', 'active', 'full'}, optional
        What it is told after an episode; by default what the task gives, or what the learner needs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Text = Field(min_length=1)
    label: Text = Field(min_length=1)
    options: dict[str, Value] = {}
    feedback: FeedbackMode | None = None

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if not isinstance(given.get("name"), str):
            return {"label": "?", **given}  # what is wrong is the name
        options = given.get("options")
        parts = [f"{key}={value}" for key, value in options.items()] if isinstance(options, dict) else []
        parts += [f"{given['feedback']} feedback"] if isinstance(given.get("feedback"), str) else []
        return {"label": ", ".join([given["name"], *parts]), **given}
