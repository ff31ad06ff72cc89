"""What a person sees who wrote a study with mistakes: all of them at once, each with its line."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from fairtrial import study

Mistakes = Callable[..., list[str]]

FIVE_KINDS = """\
study: five-mistakes
place: {vm: {memoryy: 1GiB}}
system: {mariadb: {}}
workload: {tpcc: {ramp_up: 10 parsecs, transactions: 3000}}
factors:
  kernel:
    baseline: {settings: {lru_gen: off}}
    mglru: {settings: {lru_gen: yes}}
    mglru: {}
arm: kernell
trials: {blocks: many}
metrics: {primary: throughput_tpm}
"""


WITHOUT_SERVER = "the system has no server of its own there: name another metric, or leave it out"


def test_a_metric_of_servers_is_refused_where_no_system_has_one(mistakes: Mistakes) -> None:
    text = MINIMAL.replace("mariadb: {}", "sqlite: {}").replace("throughput_tpm", "[throughput_tpm, server_cpu]")
    message = f"metric `server_cpu` is not measured ({WITHOUT_SERVER})"
    assert mistakes(text) == [f"study.yaml:6:37: metrics.primary: {message}"]
    (other,) = mistakes(f"{text.replace('sqlite', 'mariadb')}trails: {{}}\n")
    assert other.startswith("study.yaml:7:1: trails: ")


def test_a_programs_own_metric_may_be_called_like_one_of_servers(mistakes: Mistakes) -> None:
    own = "{command: {run: x, metrics: {server_cpu: {regex: '([0-9]+)'}}}}"
    text = MINIMAL.replace("mariadb: {}", "sqlite: {}").replace("throughput_tpm", "server_cpu")
    (other,) = mistakes(text.replace("{tpcc: {duration: 60s}}", own) + "trails: {}\n")
    assert other.startswith("study.yaml:7:1: trails: ")


def test_levels_that_lack_may_have_brought_a_section(mistakes: Mistakes) -> None:
    text = MINIMAL.replace("factors: {", "factors: {load: {}, ").replace("workload: {tpcc: {duration: 60s}}\n", "")
    assert mistakes(text) == ["study.yaml:3:17: factors.load: expected at least 1 entry, found an empty mapping"]


def test_a_metric_of_servers_is_refused_where_one_arm_has_none(mistakes: Mistakes) -> None:
    arms = "factors: {lru: {off: {}, on: {system: {sqlite: {}}}}}"
    text = MINIMAL.replace("throughput_tpm", "server_cpu").replace(MINIMAL.splitlines()[3], arms)
    message = f"metric `server_cpu` is not measured, with lru=on ({WITHOUT_SERVER})"
    assert mistakes(text) == [f"study.yaml:6:20: metrics.primary: {message}"]


def test_five_kinds_of_mistakes_are_reported_together_in_the_order_of_the_file(mistakes: Mistakes) -> None:
    assert mistakes(FIVE_KINDS) == [
        (
            "study.yaml:2:14: place.vm.memoryy: unknown key; expected one of `kernel`, `memory`, `cpus`, `swap`, "
            "`pmem`, `accelerator` "
            "(did you mean `memory`?)"
        ),
        (
            "study.yaml:4:28: workload.tpcc.ramp_up: expected a time such as 250ms, 60s or 10min, found '10 parsecs': "
            "'parsecs' is not one of ns, us, ms, s, min, h"
        ),
        "study.yaml:8:33: settings.lru_gen: expected 'on' or 'off', found 'yes', with kernel=mglru",
        "study.yaml:9:5: factors.kernel.mglru: key `mglru` is given twice (first at 8:5) (keep one of them)",
        "study.yaml:10:6: arm: unknown factor `kernell`; expected one of `kernel` (did you mean `kernel`?)",
        "study.yaml:11:18: trials.blocks: expected a whole number, found 'many'",
    ]


MINIMAL = """\
study: minimal
system: {mariadb: {}}
workload: {tpcc: {duration: 60s}}
factors: {lru: {off: {settings: {lru_gen: off}}, on: {settings: {lru_gen: on}}}}
arm: lru
metrics: {primary: throughput_tpm}
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trails: {blocks: 2}", ":7:1: trails: unknown key; expected one of `study`"),
        ("trials: {orderr: abba}", ":7:10: trials.orderr: unknown key; expected one of `blocks`, `order`"),
        (
            "trials: {precision: 2%}",
            "trials.precision: has no effect with `stop: fixed`; write `stop: precision`, or leave `precision` out",
        ),
        (
            "trials: {stop: anytime, spending: pocock}",
            "trials.spending: has no effect with `stop: anytime`; write `stop: sequential`, or leave `spending` out",
        ),
        ("trials: {stop: precision}", "`stop: precision` needs a target; add one, such as `precision: 2%`"),
        (
            "trials: {blocks: 4, stop: sequential, min_blocks: 5}",
            "trials.min_blocks: expected at most `blocks: 4`, found 5; lower it or raise `blocks`",
        ),
        ("trials: {stop: sequential, min_blocks: 2}", "trials.min_blocks: expected a value greater than or equal to 3"),
        (
            "trials: {order: sequential, stop: anytime}",
            "`stop: anytime` decides after rounds, and `order: sequential` has none; use randomised_blocks or abba",
        ),
        ("trials: {stop: sequental}", "found 'sequental' (did you mean `sequential`?)"),
        ("trials: {order: abab}", "found 'abab' (did you mean `abba`?)"),
        ("trials: 5", ":7:9: trials: expected a mapping, found 5"),
        ("trials: {margin: 200 %}", "trials.margin: expected a value less than 100%, found '200 %'"),
        (
            "telemetry: {interval: 1us}",
            "telemetry.interval: expected a value greater than or equal to 10ms",
        ),
        ("telemetry: {interval: 0.0050}", "expected a value greater than or equal to 0.01, found 0.0050"),
        ("trials: {confidence: 100 %}", "trials.confidence: expected a value less than 100%, found '100 %'"),
        ("trials: {margin: 0 %}", "trials.margin: expected a value greater than 0, found '0 %'"),
        ("trials: {voided_limit: true}", "trials.voided_limit: expected a whole number, found true"),
        ("trials: {margin: true}", "trials.margin: expected a share such as 2 % or 0.02, found true"),
        ("telemetry: {interval: 10500us}", "telemetry.interval: expected whole milliseconds, found 10.5 ms"),
        (
            "place: {loqal: {}}",
            ":7:9: place.loqal: unknown kind of place `loqal`; expected one of `local`, `vm` (did you mean `local`?)",
        ),
        ("place: {vm: {}, local: {}}", ":7:8: place: found `vm`, `local`; expected exactly one kind"),
        ("place: {local: }", "to use all defaults, write `local: {}`: null removes"),
        ("place: here", ":7:8: place: expected a mapping, found 'here'"),
        ("settings: {lru: on}", ":7:12: settings.lru: unknown setting `lru`"),
        ("also_compare: [lru]", ":7:16: also_compare: `lru` is already the arm"),
        ("also_compare: [mem]", ":7:16: also_compare: unknown factor `mem`"),
        (
            "expect: {on: {cpu_user_share: '> 3'}}",
            "expect.on: `on` is an arm; a condition on what the arm itself changes",
        ),
        (
            "expect: {hi: {cpu_user_share: 1..2}}",
            ":7:10: expect.hi: unknown level `hi`; expected one of `lru.off`, `lru.on`",
        ),
        ("include: [5]", ":7:11: include: expected a file or a list of files, found 5"),
        ("sizes: {ci: {trails: {}}}", ":7:14: sizes.ci.trails: unknown key `trails`"),
        ("sizes: [ci]", ":7:8: sizes: expected a mapping"),
        ("sizes: {ci: 3}", ":7:13: sizes.ci: expected a"),
    ],
)
def test_one_wrong_line(mistakes: Mistakes, line: str, expected: str) -> None:
    assert any(expected in problem for problem in mistakes(MINIMAL + line))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("trials:\n  blocks: 20\n  stop: precision", "9:9: trials.stop: `stop: precision` needs a target"),
        ("trials:\n  order: sequential\nbuilds: BUILDS", "8:10: trials.order: with `builds`, blocks share a layout"),
        (
            "builds:\n  objects: {on: /a}\n  program: /p\n  link: cc -o {output} {objects}",
            "8:12: builds.objects: expected one entry for each level of the arm",
        ),
        ("builds:\n  objects: {on: /a}\n  program: /p\n  link: cc {objects}", "10:9: builds.link: expected {output}"),
        (
            "telemetry:\n  interval: 1s\n  diagnostic_blocks: 2",
            "9:22: telemetry.diagnostic_blocks: `diagnostic_blocks`",
        ),
        (
            "telemetry:\n  command:\n  - {run: a, name: x}\n  - {run: b, name: x}",
            "10:20: telemetry.command.1.name: another command is called x",
        ),
    ],
)
def test_what_keys_say_together_is_told_where_one_of_them_stands(mistakes: Mistakes, lines: str, expected: str) -> None:
    builds = "{program: /p, objects: {off: /a, on: /b}, link: 'cc -o {output} {objects}'}"
    (found,) = mistakes(MINIMAL + lines.replace("BUILDS", builds))
    assert found.startswith(f"study.yaml:{expected}")


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ("secondary: [cpu_user_share, throughput_tpm]", "8:31: metrics.secondary.1: expected each metric once"),
        (
            "guardrail_margins:\n    cpu_user_share: 1%",
            "9:21: metrics.guardrail_margins.cpu_user_share: expected margins",
        ),
        ("adjust: true", "8:11: metrics.adjust: `adjust` has no effect without `covariates`"),
        ("x: {command: mean(a_b), better: lower}", "8:6: metrics.x: made from `command`, and `telemetry` has none"),
        (
            "x: {command: mean(a), better: lower}\ntelemetry: {command: {run: a, name: b}}",
            "8:16: metrics.x.command: no command is called a; expected one of `b`",
        ),
        (
            "covariates: time_since_boot_s\ntrials: {order: sequential}",
            "8:15: metrics.covariates: covariates compare the trials of a block",
        ),
        (
            "covariates: time_since_boot_s\n  adjust: true\ntrials: {stop: anytime}",
            "9:11: metrics.adjust: a rule that stops early looks at plain estimates",
        ),
    ],
)
def test_what_is_wrong_with_a_metric_is_told_where_it_stands(mistakes: Mistakes, metrics: str, expected: str) -> None:
    head = MINIMAL.replace("metrics: {primary: throughput_tpm}", "metrics:\n  primary: throughput_tpm\n  ").rstrip()
    (found,) = mistakes(f"{head}\n  {metrics}\n".replace("tpm\n\n", "tpm\n"))
    assert found.startswith(f"study.yaml:{expected}")


def test_what_keys_say_together_is_told_of_all_of_them(mistakes: Mistakes) -> None:
    text = MINIMAL.replace("throughput_tpm}", "[x, x], secondary: [y, x, y], guardrail_margins: {a: 3 %, b: 4 %}}")
    found = mistakes(text + "telemetry: {command: [{run: a, name: x}, {run: b, name: x}], diagnostic_blocks: 2}\n")
    assert [problem.split(": ")[1] for problem in found if "unknown metric" not in problem] == [
        "metrics.primary.1",
        "metrics.secondary.1",
        "metrics.secondary.2",
        "metrics.guardrail_margins.a",
        "metrics.guardrail_margins.b",
        "telemetry.command.1.name",
        "telemetry.diagnostic_blocks",
    ]


def test_every_metric_of_the_study_s_own_that_lacks_its_source_is_told(mistakes: Mistakes) -> None:
    own = "throughput_tpm, a: {command: mean(q), better: lower}, b_error: {prometheus: mean(q), better: lower}}"
    builds = "builds: {program: /p, objects: {off: /a}, link: 'cc -o {output} {objects}'}\n"
    assert [problem.split(": ")[1] for problem in mistakes(MINIMAL.replace("throughput_tpm}", own) + builds)] == [
        "metrics.a",
        "metrics.b_error",
        "builds.objects",
    ]


@pytest.mark.parametrize("number", [".nan", "-.inf", "1e400", "18446744073709551616"])
def test_what_is_no_finite_number_is_told_once_with_its_field(mistakes: Mistakes, number: str) -> None:
    (found,) = mistakes(MINIMAL.replace("60s", number))
    assert found.startswith("study.yaml:3:29: workload.tpcc.duration: expected a ")
    assert found.endswith(f"found {number}") or "below 2^64" in found


def test_a_level_given_twice_is_not_missed_as_well(mistakes: Mistakes) -> None:
    (found,) = mistakes(MINIMAL.replace(", on: {", ", off: {"))
    assert found.startswith("study.yaml:4:50: factors.lru.off: key `off` is given twice (first at 4:17)")


@pytest.mark.parametrize("factors", ["[lru]", "lru"])
def test_factors_that_are_no_mapping_are_told_as_what_they_are(mistakes: Mistakes, factors: str) -> None:
    found = mistakes(MINIMAL.replace(MINIMAL.splitlines()[3], f"factors: {factors}"))
    assert any(problem.startswith("study.yaml:4:10: factors: expected a mapping, found ") for problem in found)


def test_a_kind_without_a_value_is_the_one_that_the_advice_names(mistakes: Mistakes) -> None:
    (found,) = mistakes(MINIMAL.replace("{mariadb: {}}", "{sqlite: }"))
    assert found.startswith("study.yaml:2:10: system: found nothing; expected exactly one kind")
    assert "write `sqlite: {}`" in found


def test_levels_that_are_wrong_are_not_missed_as_well(mistakes: Mistakes) -> None:
    (found,) = mistakes(MINIMAL.replace("on: {settings: {lru_gen: on}}", "on: 5"))
    assert "factors.lru.on: expected a mapping, found 5" in found


@pytest.mark.parametrize("factors", ["{lru: {}}", "{lru: {off: 5, on: 6}}", "{users: {}, lru: {off: {}, on: 6}}"])
def test_a_factor_without_levels_hides_no_mistake_of_the_base_trial(mistakes: Mistakes, factors: str) -> None:
    text = MINIMAL.replace(MINIMAL.splitlines()[3], f"factors: {factors}").replace("60s", "60s, transactions: 5")
    found = mistakes(text + "settings: {swapp: 10}\n")
    assert any(problem.startswith("study.yaml:7:12: settings.swapp: unknown setting") for problem in found)
    assert any("workload.tpcc: expected exactly one of `duration` and `transactions`" in problem for problem in found)


SIZES = """\
sizes:
  ci: {trials: {blocks: 0}, workload: {tpcc: {duratoin: 1h}}, factors: {lru: {on: {settings: {lru: on}}}}}
  large: {metrics: {primary: throughput}}
"""


@pytest.mark.parametrize("size", [None, "large"])
def test_every_size_is_checked_whichever_is_chosen(mistakes: Mistakes, size: str | None) -> None:
    field = "" if size else "sizes.large."
    assert [problem.partition("; ")[0] for problem in mistakes(MINIMAL + SIZES, size=size)] == [
        "study.yaml:8:25: sizes.ci.trials.blocks: expected a value greater than or equal to 1, found 0",
        "study.yaml:8:47: sizes.ci.workload.tpcc.duratoin: unknown key",
        "study.yaml:8:95: sizes.ci.settings.lru: unknown setting `lru`",
        f"study.yaml:9:30: {field}metrics.primary: unknown metric `throughput`",
    ]


def test_what_is_wrong_at_every_size_is_told_once(mistakes: Mistakes) -> None:
    sizes = "sizes: {ci: {trails: {}}, large: {factors: {lru: {two: {settings: {sysctl: {a: 1}}}}}}}\n"
    text = MINIMAL.replace("lru_gen: on", "lru_gen: yes").replace("60s", "60 parsecs")
    assert [problem.split(": ")[1] for problem in mistakes(text + sizes)] == [
        "workload.tpcc.duration",
        "settings.lru_gen",
        "sizes.ci.trails",
    ]
    (found,) = mistakes(MINIMAL + sizes, size="ci")
    assert "sizes.ci.trails: unknown key `trails`" in found


def test_what_is_overridden_counts_for_the_size_that_is_chosen_alone(load: Callable[..., study.Study]) -> None:
    sizes = "sizes: {ci: {trials: {blocks: 9, stop: anytime, min_blocks: 9}}, large: {}}\n"
    assert load(MINIMAL + sizes, size="large", overrides=["trials.blocks=3"]).trials.blocks == 3


def test_a_factor_that_is_compared_twice_is_refused(mistakes: Mistakes) -> None:
    users = "users: {few: {}, many: {workload: {tpcc: {virtual_users: 9}}}}"
    text = MINIMAL.replace("factors: {", f"factors: {{{users}, ") + "also_compare: [users, users]\n"
    assert mistakes(text) == ["study.yaml:7:23: also_compare: `users` is named twice (keep one of them)"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("study: minimal", "study: a b", ":1:8: study: expected text that matches"),
        ("study: minimal", "question: what?", "study: required but missing"),
        ("metrics: {primary: throughput_tpm}", "", "metrics: required but missing"),
        ("throughput_tpm}", "[]}", "metrics.primary: expected at least 1 item, found an empty list"),
        (
            "throughput_tpm",
            "throughput_tmp",
            ":6:20: metrics.primary: unknown metric `throughput_tmp`; expected one of",
        ),
        ("throughput_tpm", "throughput_tmp", "(did you mean `throughput_tpm`?)"),
        (
            "throughput_tpm}",
            "throughput_tpm, secondary: [throughput_tpm]}",
            "expected each metric once, in one role",
        ),
        ("arm: lru", "", "arm: required but missing"),
        ("{duration: 60s}", "{}", ":3:18: workload.tpcc: expected exactly one of `duration` and `transactions`"),
        (
            "{duration: 60s}",
            "{duration: -3s}",
            "250ms, 60s or 10min, found '-3s', which is negative",
        ),
        ("system: {mariadb: {}}", "", "system: found nothing; expected exactly one kind of `mariadb`, `sqlite`"),
        ("on: {settings", "on: {syztem: {}, settings", "factors.lru.on.syztem: unknown key; expected one of `place`"),
        ("on: {settings: {lru_gen: on}}", "on: 5", "factors.lru.on: expected a mapping, found 5"),
        ("{lru: {", "{'bad name': {a: {}}, lru: {", "factors.bad name: expected text that matches"),
        (", on: {settings: {lru_gen: on}}", "", "arm: factor `lru` has only one level, so there is nothing to compare"),
        (
            "factors: {lru: {off: {settings: {lru_gen: off}}, on: {settings: {lru_gen: on}}}}",
            "factors: {}",
            "factors: expected at least 1 entry, found an empty mapping",
        ),
    ],
)
def test_one_changed_line(mistakes: Mistakes, *, old: str, new: str, expected: str) -> None:
    assert old in MINIMAL
    assert any(expected in problem for problem in mistakes(MINIMAL.replace(old, new, 1)))


def test_equal_arms_are_refused_even_where_their_texts_differ(mistakes: Mistakes, small: ModuleType) -> None:
    text = small.MGLRU.replace("{settings: {lru_gen: off}}", "{place: {vm: {memory: 1GiB}}}")
    text = text.replace("{settings: {lru_gen: on}}", "{place: {vm: {memory: 1024MiB}}}")
    assert mistakes(text) == [
        (
            "study.yaml:9:5: factors.kernel.mglru: arms `baseline` and `mglru` resolve to equal trials in cell "
            "underutilizing+low, underutilizing+high, overcommitting+low and others, so nothing would be compared"
        )
    ]


def test_equal_levels_of_a_factor_that_is_compared_as_well_are_refused(mistakes: Mistakes) -> None:
    text = MINIMAL.replace("{lru: {", "{time: {long: {}, longer: {workload: {tpcc: {duration: 1min}}}}, lru: {")
    assert mistakes(text + "also_compare: time\n") == [
        (
            "study.yaml:4:28: factors.time.longer: levels `long` and `longer` resolve to equal trials in cell off, on, "
            "so nothing would be compared"
        )
    ]


def test_two_factors_that_set_one_path_differently_are_named_both(mistakes: Mistakes, small: ModuleType) -> None:
    equal, confounded = mistakes(
        small.MGLRU.replace("{workload: {tpcc: {virtual_users: 38}}}", "{settings: {lru_gen: on}}")
    )
    assert confounded == (
        "study.yaml:15:34: settings.lru_gen: factors `kernel` and `users` both set it: 'off' in kernel.baseline "
        "(line 8), 'on' in users.high; their effects could not be separated (set this path in one factor only)"
    )
    assert equal.endswith("in cell underutilizing+high, overcommitting+high, so nothing would be compared")


@pytest.mark.parametrize(
    ("first", "second", "confounded"),
    [
        ("{system: {mariadb: {options: {a: 1}}}}", "{system: {mariadb: {options: {a: 1}}}}", False),
        ("{system: {mariadb: {options: {a: 1}}}}", "{system: {mariadb: {options: {a: true}}}}", True),
        ("{system: {mariadb: {options: {a: 1}}}}", "{system: {mariadb: {options: {b: 1}}}}", False),
        ("{system: {mariadb: {options: {a: 1}}}}", "{system: {mariadb: {options: null}}}", True),
        ("{system: {mariadb: {options: null}}}", "{system: {mariadb: {options: {a: 1}}}}", True),
        ("{system: {mariadb: {options: {a: 1}}}}", "{system: {sqlite: {}}}", True),
        ("{system: {mariadb: {}}}", "{system: {sqlite: {}}}", True),
        ("{place: {vm: {}}}", "{place: {vm: {memory: 2GiB}}}", False),
    ],
)
def test_confounding_is_about_paths_kinds_and_removals(
    load: Callable[..., object], mistakes: Mistakes, *, first: str, second: str, confounded: bool
) -> None:
    text = MINIMAL.replace("factors: {", f"factors: {{f: {{a: {first}, none: {{}}}}, g: {{b: {second}, none: {{}}}}, ")
    if confounded:
        assert any("factors `f` and `g` both set it" in problem for problem in mistakes(text))
    else:
        load(text)


def test_an_ambiguous_level_in_expect_suggests_its_full_names(mistakes: Mistakes) -> None:
    text = MINIMAL.replace("factors: {", "factors: {one: {low: {}, high: {}}, two: {low: {}, high: {}}, ")
    assert mistakes(text + "expect: {low: {cpu_user_share: 1..2}}") == [
        "study.yaml:7:10: expect.low: level `low` belongs to more than one factor (write `one.low`, `two.low`)"
    ]


def test_a_metric_that_only_some_trials_give_says_which_do_not(mistakes: Mistakes) -> None:
    text = MINIMAL.replace("factors: {", "factors: {load: {tpcc: {}, other: {workload: {command: {run: x}}}}, ")
    assert mistakes(text) == [
        (
            "study.yaml:6:20: metrics.primary: metric `throughput_tpm` is not measured, with load=other "
            "(name a metric that every trial measures)"
        )
    ]


def test_a_metric_called_like_a_factor_or_a_column_of_every_trial_is_refused(mistakes: Mistakes) -> None:
    run = "workload: {command: {run: x, metrics: {used: {regex: x}, lru: {regex: x}, fine: {regex: x}}}}"
    level = "other: {workload: {command: {run: y, metrics: {lru: {regex: y}}}}}"
    text = MINIMAL.replace("workload: {tpcc: {duration: 60s}}", run)
    text = text.replace("{lru: {", f"{{load: {{own: {{}}, {level}}}, lru: {{")
    text = text.replace("throughput_tpm", "fine, block: {prometheus: delta(a_total), better: lower}")
    advice, a_factor = " already (give the metric another name)", "a factor is called `lru`"
    assert [each.removesuffix(advice) for each in mistakes(text) if each.endswith(advice)] == [
        "study.yaml:3:40: workload.command.metrics.used: a column of every table of trials is called `used`",
        f"study.yaml:3:58: workload.command.metrics.lru: {a_factor}",
        f"study.yaml:4:74: factors.load.other.workload.command.metrics.lru: {a_factor}",
        "study.yaml:6:26: metrics.block: a column of every table of trials is called `block`",
    ]


def test_a_metric_that_means_two_things_is_refused(mistakes: Mistakes) -> None:
    levels = [
        f"{{workload: {{command: {{run: x, metrics: {{t: {{regex: x, unit: {unit}}}}}}}}}}}" for unit in ("s", "ms")
    ]
    text = MINIMAL.replace("factors: {", f"factors: {{load: {{a: {levels[0]}, b: {levels[1]}}}, ")
    problems = mistakes(text.replace("throughput_tpm", "t"))
    assert problems == [
        (
            "study.yaml:6:20: metrics.primary: metric `t` is defined differently, with load=b "
            "(define it the same way for all levels)"
        )
    ]


def test_a_mistake_in_one_level_is_reported_once_whatever_the_number_of_combinations(
    mistakes: Mistakes, small: ModuleType
) -> None:
    problems = mistakes(small.MGLRU.replace("virtual_users: 38", "virtual_users: lots"))
    assert problems == [
        "study.yaml:15:47: workload.tpcc.virtual_users: expected a whole number, found 'lots', with users=high"
    ]


def test_too_many_combinations_are_refused_before_any_is_tried(mistakes: Mistakes) -> None:
    factors = ", ".join(f"f{n}: {{a: {{}}, b: {{}}, c: {{}}, d: {{}}}}" for n in range(7))
    assert any(
        f"{2 * 4**7} combinations" in line
        for line in mistakes(MINIMAL.replace("factors: {", f"factors: {{{factors}, "))
    )


def test_mistakes_in_an_include_name_the_included_file(mistakes: Mistakes) -> None:
    problems = mistakes(MINIMAL + "include: part.yaml", files={"part.yaml": "trials:\n  blocks: x\n"})
    assert problems == ["part.yaml:2:11: trials.blocks: expected a whole number, found 'x'"]


def test_mistakes_on_the_command_line_name_the_option(mistakes: Mistakes) -> None:
    assert mistakes(MINIMAL, overrides=["trials.blocks=x", "=3", "a b=1", "trials.sede=3"]) == [
        "--set: expected path=value, found `=3` (for example trials.blocks=5)",
        "--set: expected path=value, found `a b=1` (for example trials.blocks=5)",
        "--set: trials.blocks: expected a whole number, found 'x'",
        (
            "--set: trials.sede: unknown key; expected one of `blocks`, `order`, `seed`, `margin`, `stop`, "
            "`min_blocks`, `spending`, `futility`, `equivalence`, `precision`, `time_budget`, `confidence` and 7 more "
            "(did you mean `seed`?)"
        ),
    ]


@pytest.mark.parametrize("override", ["include=other.yaml", "sizes.ci.trials.blocks=1"])
def test_what_only_a_file_can_say_is_refused_on_the_command_line(mistakes: Mistakes, override: str) -> None:
    key = override.partition("=")[0].partition(".")[0]
    assert mistakes(MINIMAL, overrides=[override]) == [
        f"--set: {key}: it is available in a file only (write it in the study)"
    ]


def test_an_unknown_size_suggests_the_nearest(mistakes: Mistakes, small: ModuleType) -> None:
    assert mistakes(small.MGLRU, size="c1") == ["study.yaml:21:8: sizes: unknown size `c1`; expected one of `ci`"]
    assert mistakes(MINIMAL, size="ci") == ["--size: sizes: unknown size `ci`; none is available"]
