"""The lists of another engine, compared with those that were decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray
from rmab.live.events import Decide


@dataclass(frozen=True, eq=False)
class Shadow:
    """The lists of an engine that does not decide.

    Attributes
    ----------
    periods : tuple of str
        The T periods that were decided.
    listed : tuple of tuple of str
        (T,) the arms that the engine would have listed.
    agreement : (T,) float array
        Fraction of the decided places that it would have given to the same arms; 1 if both lists are empty.
    promised, own_promise : (T,) float array
        Prediction of the model at the time for the places by index of the engine, and for those that were decided; NaN
        if there was no model.
    fallbacks : tuple of str
        (T,) why the engine could not decide; empty if it could.

    Examples
    --------
    >>> import tempfile, rmab
    >>> with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/p.db") as store:
    ...     p = store.create("p", states=["low", "high"], every="number", budget=2, reward={"high": 1})
    ...     _ = p.join([str(k) for k in range(6)], state="low")
    ...     _ = p.ask(1)
    ...     print(p.shadow("mean"))
    1 period: 100% of the places would have gone to the same arms
    """

    periods: tuple[str, ...]
    listed: tuple[tuple[str, ...], ...]
    agreement: FloatArray
    promised: FloatArray
    own_promise: FloatArray
    fallbacks: tuple[str, ...]

    def __str__(self) -> str:
        if not self.periods:
            return "no period is decided yet"
        count = f"{len(self.periods)} period{'' if len(self.periods) == 1 else 's'}"
        return f"{count}: {self.agreement.mean():.0%} of the places would have gone to the same arms"


def compare_lists(pairs: Sequence[tuple[str, Decide, Decide]]) -> Shadow:
    """Return the shadow of periods, given as label, decided list, and list of the engine."""
    agreement = []
    for _, decided, other in pairs:
        both, whole = set(decided.listed) & set(other.listed), max(len(decided.listed), len(other.listed))
        agreement.append(len(both) / whole if whole else 1.0)
    promised = [[np.nan if one.promise is None else one.promise[0] for one in (other, own)] for _, own, other in pairs]
    table = np.array(promised, dtype=np.float64).reshape(-1, 2)
    return Shadow(
        periods=tuple(label for label, _, _ in pairs),
        listed=tuple(tuple(other.listed) for _, _, other in pairs),
        agreement=np.array(agreement),
        promised=table[:, 0],
        own_promise=table[:, 1],
        fallbacks=tuple(other.why for _, _, other in pairs),
    )
