"""Effects as lines to read: whatever a study says stays on its line and moves no cursor."""

from __future__ import annotations

import getpass
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from fairtrial.effects import PlaceActs, Trial
from fairtrial.places.local import YOU
from fairtrial.programs import SERVERS, Act
from fairtrial.record.models import Plan
from fairtrial.run.opening import ROOT, SERVER_USERS
from fairtrial.words import printable

ORDER: Final = ("knows not", "runs", "downloads", "connects", "listens", "changes", "writes", "reads")
HEADS: Final = {
    "knows not": "not known before a run",
    "runs": "runs",
    "downloads": "downloads",
    "connects": "connects to",
    "listens": "listens on",
    "changes": "changes",
    "writes": "writes",
    "reads": "reads",
}
MOST_NAMED: Final = 4
END: Final = "a program may do whatever its user may: this list tells what is started, not what it then does"


def lines(plan: Plan, found: Sequence[PlaceActs], trials: Collection[Trial]) -> Iterator[str]:
    """The whole list."""
    yield f"{visible(plan.study)}: what a run does, told from the study alone; nothing was run, reached or changed"
    yield f"words in braces are filled in by the run; {SERVERS}: {_servers()}"
    for place in found:
        yield ""
        yield f"place {visible(place.title)}; the agent there is {visible(_named(place.agent_user))}"
        for kind in ORDER:
            acts = [act for act in place.acts if act.kind == kind]
            if acts:
                yield f"  {HEADS[kind]}"
            for act in acts:
                yield f"    {visible(act.what)}"
                yield f"        {' · '.join(_details(act, place, trials))}"


def _details(act: Act, place: PlaceActs, trials: Collection[Trial]) -> Iterator[str]:
    if act.when:
        yield visible(act.when)
    if act.kind in ("runs", "changes"):
        yield f"as {visible(act.user or (_named(YOU) if act.here else _named(place.agent_user)))}"
    if act.here and place.agent_user != YOU:
        yield "on this machine"
    if act.undo:
        yield f"undone: {visible(act.undo)}"
    yield _where(place.acts[act], trials)


def _where(done: Collection[Trial], trials: Collection[Trial]) -> str:
    """Which trials do it: all, those of some arms, or by cell and arm."""
    if len(done) == len(trials):
        return "all arms"
    arms = dict.fromkeys(arm for _, arm in trials if any(arm == other for _, other in done))
    if len(done) == sum(arm in arms for _, arm in trials):
        return f"only {', '.join(map(visible, arms))}"
    named = [visible(f"{cell} {arm}") for cell, arm in sorted(done)]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return f"only {', '.join(named[:MOST_NAMED])}{more}"


def _named(user: str) -> str:
    return f"{user} (you, {getpass.getuser()})" if user == YOU else user


def _servers() -> str:
    """Who that would be on this machine; elsewhere by the same rule."""
    rule = f"the first of {', '.join(SERVER_USERS)} that the place has"
    return f"{rule}, where the agent is root; else the agent's user" + (
        " (you are root)" if os.getuid() == ROOT else ""
    )


def visible(text: str) -> str:
    """On one line, with what would not be seen as escape sequences."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
