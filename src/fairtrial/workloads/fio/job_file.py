"""A study's parameters as a job file of fio's."""

from __future__ import annotations

from typing import Final

from fairtrial.workloads import tool
from fairtrial.workloads.fio.parameters import FioParameters
from fairtrial.workloads.prepared_files import skewed
from fairtrial.workloads.tool import Life

JOB: Final = "job"  # its files are `job.0`, `job.1` and so on, as the loader names them
ENDLESS_BYTES: Final = "1000t"  # fio ends a job after `size` bytes otherwise, however many accesses are asked for
CENTRED: Final = ("zipf", "pareto")  # their centre is drawn by fio, from its seed, where it is not given


def distribution(name: str, *, trial_seed: int) -> str:
    """The distribution with its centre, which must be the same in warm-up and window."""
    skew = skewed(name)
    if skew is None or skew[0] not in CENTRED or skew[2] is not None:
        return name
    centre = tool.seed_of(trial_seed, "centre") / (1 << tool.SEED_BITS)
    return f"{name}:{centre:.6f}"


def text(parameters: FioParameters, life: Life, *, directory: str, chosen: str) -> str:
    """The whole file.

    Args:
        parameters: of the workload.
        life: which process of the trial.
        directory: of the prepared files.
        chosen: the distribution, from `distribution`.
    """
    options: dict[str, object] = {
        "directory": directory.replace(":", r"\:"),
        "filename_format": f"{JOB}.$jobnum",
        "allow_file_create": 0,
        "numjobs": parameters.jobs,
        "size": parameters.size,
        "bs": parameters.block_size,
        "rw": parameters.rw,
        "ioengine": parameters.engine,
        "iodepth": parameters.iodepth,
        "direct": int(parameters.direct),
        "invalidate": 0,
        "randrepeat": 0,
        "randseed": life.seed,
    }
    if parameters.is_random:
        options |= {"random_distribution": chosen, "norandommap": 1}
    if life.duration_s is not None:
        options |= {"time_based": 1, "runtime": f"{round(life.duration_s * 1000)}ms"}
    else:
        options |= {"number_ios": life.count, "io_size": ENDLESS_BYTES}
    if life.log is not None:
        options |= {
            "write_hist_log": str(life.log),
            "log_hist_msec": round(parameters.interval * 1000),
            "per_job_logs": 1,
        }
    lines = [name if value == "" else f"{name}={value}" for name, value in {**options, **parameters.options}.items()]
    return "\n".join([f"[{JOB}]", *lines, ""])
