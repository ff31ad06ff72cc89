"""What is read and run beside the load, and programs that are linked for it."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.programs import Act
from fairtrial.record.models import Plan
from fairtrial.study.builds import Builds
from fairtrial.study.probes import Probe
from fairtrial.words import counted


def acts(plan: Plan, *, arm: str) -> Iterator[Act]:
    """Of one arm's trials."""
    yield Act("runs", "fairtrial-agent sample, which reads /proc, /sys and the server's own counters")
    for exporter in plan.exporters:
        every = exporter.interval_ms(plan.telemetry_interval_ms)
        yield Act("connects", exporter.url, f"in every trial, every {every} ms")
    for command in plan.counter_commands:
        every = command.interval_ms(plan.telemetry_interval_ms)
        yield Act("runs", command.run, f"in every trial, every {every} ms")
    if plan.builds is not None:
        yield from _linking(plan.builds, arm=arm)
    for probe in plan.probes:
        yield _probing(probe)


def _linking(builds: Builds, *, arm: str) -> Iterator[Act]:
    for pattern in builds.objects.get(arm, []):
        yield Act("reads", pattern, "once, to link programs")
    yield Act("runs", builds.link, f"once, {counted(builds.link_orders, 'time')} for each arm")
    undo = "nothing: the last program stays where the study names it"
    yield Act("changes", f"file {builds.program}: the program of each trial's arm", "before every trial", undo=undo)


def _probing(probe: Probe) -> Act:
    trials = "in diagnostic trials, which no estimate uses"
    when = f"for a moment before the first trial, and {trials}"
    if probe.file is not None:
        return Act("reads", probe.file, when)
    if probe.command is not None:  # which is only looked for beforehand
        return Act("runs", probe.command, trials)
    if probe.bpftrace is not None:
        return Act("runs", f"bpftrace, in the kernel: {probe.bpftrace.program}", when)
    return Act("runs", probe.label, when)
