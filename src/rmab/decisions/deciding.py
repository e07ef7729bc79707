"""The decision: indices and rules become a list with ranks, reasons, probabilities, prices and notes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, as_integer, as_seed, as_share, is_several
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.decision import Decision
from rmab.decisions.fairness import find_unfairness, write_warnings
from rmab.decisions.filling import fill_places
from rmab.decisions.notes import write_notes
from rmab.decisions.randomness import TIES, Randomness
from rmab.decisions.reasons import write_reasons
from rmab.decisions.rules import Rule, Rules
from rmab.decisions.since import Last, LastList, find_changes
from rmab.decisions.sources import Source, candidates_of
from rmab.decisions.spending import Costs
from rmab.decisions.standing import Standing, find_standing
from rmab.errors import ModelError
from rmab.estimation.fit import Fit
from rmab.logs.findings import list_some, quote
from rmab.logs.slips import suggest_spelling
from rmab.logs.words import PLAIN_WORDS, Words


def decide(
    source: Source,
    budget: float | None = None,
    *,
    cost: Costs | None = None,
    horizon: int = 26,
    states: ArrayLike | None = None,
    step: int = 0,
    ids: Sequence[object] | None = None,
    groups: Mapping[str, Sequence[object]] | None = None,
    waited: ArrayLike | None = None,
    period: str = "",
    words: Words = PLAIN_WORDS,
    floor: int | None = None,
    must: Iterable[str] = (),
    must_not: Iterable[str] = (),
    caps: Mapping[str, int] | None = None,
    random_share: float = 0.0,
    rules: Iterable[Rule] = (),
    since: Last | None = None,
    seed: int = 0,
) -> Decision:
    """Decide which arms to activate now: those with the largest expected gain, under the rules of the programme.

    Parameters
    ----------
    source : Fit, EpisodePlan, PlanResult, IndexPolicy, Candidates, dict of str to float, or array_like (N,)
        What the indices come from. A model is planned for `horizon` periods. The plan of a learner, or an index policy,
        needs the `states` now and the `step`. Custom indices are a dictionary of ids, or an array with `ids`.
    budget : int or float, optional
        Number of places; by default the average number of actions per period of the log, or the policy's budget.
        With costs, the amount to spend.
    cost : float, array_like (N,), dict of str to float, or path, optional
        What acting on each arm costs; a file has the columns id and cost. The index is then per unit of cost. The highest
        go first; an arm that does not fit is left out, and the next ones are tried. A policy has its own costs.
    horizon : int
        Number of periods to plan ahead, for a model.
    states : array_like, shape (N,), optional
        For a plan or a policy the states as numbers; for custom indices their names.
    step : int
        The step of the episode, for a plan or a policy.
    ids, groups, waited, words
        Of the arms, as in `Candidates.of`; not for a model, which has them.
    period : str
        The period that the list is for. A model finds it in the log: the last period, if nobody was acted on in it, else
        the next; `notes` says why.
    floor : int, optional
        Everybody has a turn at least every `floor` periods. Arms that are due go first. An error if the budget is too
        small for it.
    must, must_not : ids
        Who is on the list, or not on it, regardless of the index.
    caps : dict of str to int, optional
        The most that a group gets: ``{"district=north": 20}``.
    random_share : float
        Fraction of the places to randomise: of the arms that the index chooses, so many are left out, at most half,
        and as many others are drawn instead. `rmab.data.measure` then estimates the effect of the lists. Where costs differ,
        places change hands between arms of the same cost.
    rules : functions, optional
        Custom rules. Each gets the `Draft`, and returns the numbers of the arms that it gives a place; they are called after
        the floor and before the index.
    since : Decision or path, optional
        The last list, or its file: `Decision.changes` then shows who is new, again on the list or dropped, and why. A file
        gives most reasons if it contains everybody: ``save(path, upcoming=None)``.
    seed : int
        Random seed of ties and draws, which have independent numbers: hashes of seed, period, purpose and id. Ties go
        to the arm that has waited longest. `probability` is exact over all seeds, with what custom rules chose as given.

    Returns
    -------
    Decision
        Ranks, reasons, prices and notes. Places stay empty if acting is expected to help nobody else.

    Raises
    ------
    ModelError
        If rules contradict each other, or name unknown arms or groups.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> fitted = rmab.data.fit(log, reward={"engaged": 1})
    >>> calls = rmab.data.decide(fitted, budget=10)
    >>> calls
    Decision(10 of 186 arms, for 2024-W20)
    >>> [one.strip() for one in calls.rows()[0].reason.split(";")][::2]
    ['wavering since this week', '1st of 186']
    """
    arms = {"ids": ids, "groups": groups, "waited": waited, "period": period, "words": words}
    candidates, limit = candidates_of(source, budget, horizon, states, step, cost=cost, **arms)
    roster = candidates.roster
    every = 0 if floor is None else as_integer(floor, "floor")
    if floor is not None and every < 1:
        raise ModelError(f"floor must be a number of periods, 1 or more, got {every}")
    forced, excluded = _find_arms(candidates, must, "must"), _find_arms(candidates, must_not, "must_not", candidates.gone)
    if (forced & excluded).any():
        raise ModelError(
            f"must and must_not both name {list_some([roster.ids[k] for k in np.flatnonzero(forced & excluded)])}"
        )
    custom: tuple[Rule, ...] = tuple(rules) if is_several(rules) else (None,)  # type: ignore[assignment]  # refused below
    if not all(callable(one) for one in custom):
        raise ModelError(f"rules must be a list of functions of a Draft, got {rules!r:.60}", field="rules")
    excluded |= _find_arms(candidates, candidates.done, "done") & ~forced
    share = as_share(random_share, "random_share")
    members = _find_caps(candidates, {} if caps is None else caps)
    differ = candidates.cost is not None
    number = 0 if differ else int(share * limit + 0.5)
    respected = Rules(limit, forced, excluded, every, number, members, custom, share if differ else 0.0)
    last = None if since is None else LastList.of(since)
    source_of_draws = Randomness(as_seed(seed), candidates.period)
    choice = fill_places(candidates, respected, source_of_draws)
    order = candidates.rank(source_of_draws.numbers(roster.ids, TIES))
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    unfair = find_unfairness(candidates, choice, respected, source_of_draws)
    left = sorted(set(candidates.gone) & set(map(str, must_not)))
    standing = find_standing(source) if isinstance(source, Fit) else Standing()
    priced, before = not standing.is_denied, "" if last is None else last.period
    notes = (
        *write_notes(candidates, choice, respected, random_share=share, left=left, priced=priced, before=before),
        *write_warnings(candidates.words, unfair, priced=priced),
        *filter(None, [standing.note]),
    )
    return Decision(
        period=candidates.period,
        budget=limit,
        arms=roster.ids,
        states=candidates.states,
        index=candidates.index,
        rank=rank,
        rule=tuple(choice.rule.tolist()),
        probability=choice.probability,
        reasons=write_reasons(candidates, choice, rank),
        prices=choice.prices,
        fairness=unfair,
        notes=notes,
        words=candidates.words,
        groups=roster.columns or None,
        changes=None if last is None else find_changes(last, candidates, choice, respected, rank),
        dialect=candidates.dialect,
        cost=candidates.cost,
        standing=standing.name,
    )


def _find_arms(candidates: Candidates, ids: Iterable[str], what: str, but: Collection[str] = ()) -> BoolArray:
    """(N,) the arms that are named; ModelError if one is unknown, or has left."""
    if not is_several(ids):
        raise ModelError(f"{what} must be a list of ids, got {ids!r:.40}")
    absent = set(but)
    given = [one for one in map(str, ids) if one not in absent]
    places = {name: k for k, name in enumerate(candidates.roster.ids)} if given else {}
    unknown = [one for one in dict.fromkeys(given) if one not in places]
    if unknown:
        why = "; some of them are taken to have left (gone_after)" if set(candidates.gone) & set(unknown) else ""
        hint = suggest_spelling(unknown, places)
        raise ModelError(f"{what}: unknown arm {list_some([quote(one) for one in unknown])}{hint}{why}")
    found = np.zeros(len(candidates.roster.ids), dtype=bool)
    found[[places[one] for one in given]] = True
    return found


def _find_caps(candidates: Candidates, caps: Mapping[str, int]) -> tuple[Cap, ...]:
    """Return the caps with their members; ModelError if a group is unknown."""
    if not isinstance(caps, Mapping):
        raise ModelError(f"caps must name groups and limits, for example {{'district=north': 20}}, got {caps!r:.40}")
    found = []
    for name, most in caps.items():
        label, members = candidates.roster.members(name, "caps")
        limit = as_integer(most, f"caps: {name}")
        if limit < 0:
            raise ModelError(f"caps: {name} must be 0 or more, got {limit}")
        found.append(Cap(label, members, limit))
    if len({one.label for one in found}) < len(found):
        raise ModelError("caps: a group is given twice; keep one")
    return tuple(found)
