"""How the run went, as doubts: voided blocks, failed expectations, an unfinished end, an order that is not random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairtrial.analyse.doubts import clients as client_doubts
from fairtrial.analyse.doubts import contents as content_doubts
from fairtrial.analyse.doubts import existing as existing_doubts
from fairtrial.analyse.doubts import failures as failure_doubts
from fairtrial.analyse.doubts import files as file_doubts
from fairtrial.analyse.doubts import readings as reading_doubts
from fairtrial.analyse.doubts import shutdowns as shutdown_doubts
from fairtrial.analyse.doubts import work as work_doubts
from fairtrial.analyse.models import Doubt, ExpectationResult
from fairtrial.analyse.selection import Selection
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.words import counted

CLIENT_BUSY: Final = "client_busy_share"
TIMED_OUT: Final = "timed_out_share"
SATURATED_LATENCIES: Final = "saturated_latencies"
ACCELERATOR: Final = "accelerator"  # in a trial's `subject`: what ran the guest
EMULATION: Final = "tcg"
PROGRAMS: Final = 5  # that a message names
# A thread that waits for less than a tenth of its time answers late: by queueing theory its queue is ten deep.
SATURATED_SHARE: Final = 0.9


def course(
    plan: Plan, selection: Selection, *, expected: Mapping[str, tuple[ExpectationResult, ...]], finished: bool
) -> Iterator[Doubt]:
    """Every doubt about the course of a run. None of them can be a false alarm: they count, they do not estimate."""
    if not finished:
        yield Doubt(
            code="unfinished",
            message=f"the run ended after {selection.counts.finished} of {selection.counts.planned} planned trials",
            advice="continue with `fairtrial run --resume`; until the run is finished there is no verdict",
        )
    yield from _voided(selection)
    yield from _restless(selection)
    yield from _kept(selection)
    yield from _left_running(selection)
    yield from content_doubts.about(selection.used)
    yield from _saturated(selection)
    yield from client_doubts.about(plan, selection.used)
    yield from _timed_out(selection)
    yield from failure_doubts.about(plan, selection.used)
    yield from _beyond_histograms(selection)
    yield from _emulated(plan, selection)
    yield from existing_doubts.moved(plan, selection.used)
    yield from file_doubts.about(selection.used)
    yield from shutdown_doubts.about(selection.used)
    yield from reading_doubts.about(plan, selection.used)
    yield from work_doubts.about(selection.used, primary=plan.metrics.primary)
    yield from _failed(expected)
    if not plan.against_itself:  # both arms are the baseline, which changes no condition
        yield from _left(expected)
    yield from _order(plan, selection)


def _voided(selection: Selection) -> Iterator[Doubt]:
    counts = selection.counts
    if not counts.blocks_voided:
        return
    invalid, blocks = counted(counts.invalid, "invalid trial"), counted(counts.blocks_voided, "block")
    by_cell = {cell: sum(name == cell for name, _ in selection.voided) for cell, _ in selection.voided}
    where = ", ".join(f"{count} of {cell}" for cell, count in by_cell.items())
    yield Doubt(
        code="voided",
        message=f"{blocks} voided ({where}), {counts.blocks_replaced} replaced; {invalid}; "
        f"{counted(counts.finished - counts.used, 'finished trial')} excluded",
        advice="see `invalid_reason` of these trials: if one arm fails more often, that is a result, too",
    )


def _restless(selection: Selection) -> Iterator[Doubt]:
    """Asks what `settle` found in the end; a trial of a record that does not say counts as at rest."""
    dirty = {
        trial.trial.id: settled.dirty_bytes
        for trial in selection.used
        if (settled := trial.data.settled) is not None and not settled.at_rest
    }
    if dirty:
        worst = max(dirty, key=lambda name: dirty[name])
        yield Doubt(
            code="not_at_rest",
            message=f"{len(dirty)} of {selection.counts.used} used trials began while the kernel was still writing "
            f"pages, {worst} with {dirty[worst] / 2**20:.0f} MiB",
            advice="another program writes here, or the disk is slow: find out which, or leave more time between "
            "trials",
        )


def _kept(selection: Selection) -> Iterator[Doubt]:
    """Asks whether the page cache was dropped before every trial; a record that does not say counts as dropped."""
    used = selection.used
    kept = [trial for trial in used if trial.data.settled is not None and not trial.data.settled.dropped]
    if kept:
        by_arm = {trial.trial.arm: sum(other.trial.arm == trial.trial.arm for other in kept) for trial in kept}
        where = ", ".join(f"{count} of {arm}" for arm, count in by_arm.items())
        yield Doubt(
            code="cache_kept",
            message=f"the page cache was not dropped before {len(kept)} of {counted(len(used), 'used trial')} "
            f"({where}): the agent may not do so there, and what earlier trials read may still be in memory",
            advice="do not take these trials for cold starts; to drop the cache, run as root, and let fairtrial make "
            "the container",
        )


def _left_running(selection: Selection) -> Iterator[Doubt]:
    """Asks whether a trial's own programs ran on after its load, or beside the next run of it."""
    used = selection.used
    left = {trial.trial.id: trial.left_running for trial in used if trial.left_running}
    if left:
        names = sorted({name for programs in left.values() for name in programs})
        shown = ", ".join(names[:PROGRAMS]) + (" and others" if len(names) > PROGRAMS else "")
        yield Doubt(
            code="left_running",
            message=f"in {len(left)} of {counted(len(used), 'used trial')} the server or the load had left programs "
            f"running ({shown}), which were ended before the next trial",
            advice="let them end, or wait for them, before the load or the server ends: what they do after that is in "
            "no figure, and with several runs in a trial they run beside the next one",
        )


def _beyond(selection: Selection, scalar: str, limit: float) -> tuple[dict[str, float], str]:
    """A scalar by trial where it exceeds a limit, and the worst trial; workloads that do not measure it have none."""
    every = {trial.trial.id: trial.scalars.get(scalar, 0.0) for trial in selection.used}
    beyond = {name: value for name, value in every.items() if value > limit}
    return beyond, max(beyond, key=lambda name: beyond[name], default="")


def _saturated(selection: Selection) -> Iterator[Doubt]:
    """Asks whether the client could have done more."""
    full, worst = _beyond(selection, CLIENT_BUSY, SATURATED_SHARE)
    if full:
        clients = client_doubts.saturated(selection.used, limit=SATURATED_SHARE)
        yield Doubt(
            code="client_saturated",
            message=f"in {len(full)} of {selection.counts.used} used trials a thread of the client was hardly ever "
            f"idle, in {worst} it was busy for {100 * full[worst]:.0f} % of the time"
            + (f" ({clients})" if clients else ""),
            advice="the client may have been the bottleneck: give it processors of its own, or fewer users",
        )


def _timed_out(selection: Selection) -> Iterator[Doubt]:
    """Asks whether latency is of all transactions."""
    left, worst = _beyond(selection, TIMED_OUT, 0.0)
    if left:
        yield Doubt(
            code="timed_out",
            message=f"in {len(left)} of {selection.counts.used} used trials transactions were abandoned before they "
            f"began, in {worst} a share of {left[worst]:.2g} of those that were due",
            advice="latency and lateness exclude them and therefore look better: read both together with "
            f"`{TIMED_OUT}`",
        )


def _beyond_histograms(selection: Selection) -> Iterator[Doubt]:
    """Asks whether latencies were longer than histograms tell apart."""
    beyond, worst = _beyond(selection, SATURATED_LATENCIES, 0.0)
    if beyond:
        yield Doubt(
            code="latency_saturated",
            message=f"{counted(int(sum(beyond.values())), 'transaction')} of {len(beyond)} used trials took longer "
            f"than an hour and count as an hour in the histograms, {beyond[worst]:.0f} of them in {worst}",
            advice="maximum, mean and percentiles that reach there are lower bounds: reduce the load or the rate",
        )


def _emulated(plan: Plan, selection: Selection) -> Iterator[Doubt]:
    """Asks whether clocks were evidence: emulation stretches what it does in software, and not all of it alike."""
    emulated = sum(trial.subject.get(ACCELERATOR) == EMULATION for trial in selection.used)
    named = (*plan.metrics.primary, *plan.metrics.secondary, *plan.metrics.guardrails)
    clocks = [name for name in named if plan.metrics.definitions[name].kind == "wall_clock"]
    if emulated and clocks:
        yield Doubt(
            code="emulated",
            message=f"{emulated} of {selection.counts.used} used trials ran under software emulation, where "
            f"{', '.join(clocks)} {'is' if len(clocks) == 1 else 'are'} not evidence",
            advice="read counts per transaction, and measure times where the kernel runs on the processor itself",
        )


def _failed(expected: Mapping[str, tuple[ExpectationResult, ...]]) -> Iterator[Doubt]:
    for results in expected.values():
        for result in results:
            if not result.met:
                of = "".join(f" of {each.arm}" for each in result.by_arm[:1])
                if result.mean is None:
                    found = f"no valid trial{of} has a value of it"
                    advice = "nothing says that the cell is what its name says, so it gets no verdict: find out why"
                else:
                    found = f"the mean of {counted(result.n, 'trial')}{of} is {result.mean:.4g}"
                    advice = "the cell is not what its name says, so it gets no verdict: change its levels"
                yield Doubt(
                    code="expectation_failed",
                    message=f"expected {result.text}, but {found}",
                    advice=advice,
                    cell=result.cell,
                    metric=result.metric,
                )


def _left(expected: Mapping[str, tuple[ExpectationResult, ...]]) -> Iterator[Doubt]:
    """Asks whether other arms stayed in the condition that the baseline is in; where it is not, none could leave it."""
    for result in (result for results in expected.values() for result in results if result.met):
        for each in result.by_arm[1:]:
            if each.mean is not None and not each.inside:
                yield Doubt(
                    code="arm_leaves_condition",
                    message=f"in {result.cell} the mean {result.metric} is {result.mean:.4g} with "
                    f"{result.by_arm[0].arm}, as expected ({result.text}), but {each.mean:.4g} with {each.arm}",
                    advice="the arm may change the condition itself, and part of its effect may come from that: say so "
                    "with the verdict, or choose levels at which all arms stay in the range",
                    cell=result.cell,
                    metric=result.metric,
                    arm=each.arm,
                )


def _processors(trial: TrialRecord) -> str:
    """A half's, in the words of its place's command; empty where the record does not say."""
    parameters = trial.resolved.place.parameters
    command = parameters.get("command") if isinstance(parameters, dict) else None
    return str(command or "").replace("taskset -c", "processors")


def _order(plan: Plan, selection: Selection) -> Iterator[Doubt]:
    order = plan.design.order
    if order == "sequential":
        yield Doubt(
            code="not_randomised",
            message="trials ran one arm after the other, so trials are not paired",
            advice="whatever changes with time looks like an effect of the arm; use randomised_blocks",
        )
    elif order == "duet":
        halves = sorted({where for trial in selection.used if (where := _processors(trial))})
        yield Doubt(
            code="duet",
            message="both arms of a block ran at the same time on halves of one machine"
            + (f" ({' and '.join(halves)})" if halves else "")
            + ": they shared its disk, caches, memory bandwidth, frequency and the kernel's own work",
            advice="an arm that takes more of what is shared slows the other, so the ratio is not that of arms alone: "
            "confirm it by a few blocks of `order: randomised_blocks`",
        )
    elif order == "abba" and selection.contrast != plan.arm:
        yield Doubt(
            code="not_randomised",
            message=f"order `abba` balances {plan.arm} only; levels of {selection.contrast} ran in the same order in "
            "every round",
            advice="whatever changes within a round looks like their effect; use randomised_blocks",
        )
