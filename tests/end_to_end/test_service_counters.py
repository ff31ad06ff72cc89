"""Counters of services as a study's metrics: by real exporters, and by one that goes wrong in the middle of a trial."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from support.command_line import PATIENCE_S, Desk
from support.machines import exporter
from support.machines.places import place_here
from support.machines.ssh_host import free_port
from support.records import tiny_plan
from support.skips import SERVERS, require

from fairtrial import record
from fairtrial.metrics import telemetry
from fairtrial.protocol.generated import MysqlEndpoint, Sql
from fairtrial.protocol.subcommands import SQL
from fairtrial.run import opening
from fairtrial.run.trial import sampling, workspace
from fairtrial.study.service_counters import Exporter
from fairtrial.systems import Launch
from fairtrial.systems.mariadb import Mariadb, MariadbParameters

pytestmark = pytest.mark.servers

NODE = """\
study: forks
question: How many processes does a shell start?
system:
  service:
    run: prometheus-node-exporter --web.listen-address={host}:{metrics} --collector.disable-defaults --collector.stat
    ready: {port: metrics}
    ports: [metrics]
# What it starts is in no interval at an edge of the window, of which a metric's error is.
workload: {command: {run: "sh -c 'sleep 1.2; for i in $(seq 20); do /bin/true; done; sleep 1.2'"}}
factors:
  loop:
    short: {}
    long: {workload: {command: {run: "sh -c 'sleep 1.2; for i in $(seq 1000); do /bin/true; done; sleep 1.2'"}}}
arm: loop
trials: {blocks: 1}
telemetry:
  interval: 1s
  prometheus: {url: "http://{host}:{metrics}/metrics", match: [node_forks_total, "node_*_seconds"]}
  command: {run: cat /proc/loadavg, name: load, regex: '^\\S+'}
metrics:
  primary: forks
  secondary: [starts, load1]
  forks: {prometheus: delta(node_forks_total), unit: processes, better: lower, label: processes started}
  starts: {prometheus: rate(node_forks_total), unit: processes/s, better: lower}
  load1: {command: mean(load), better: lower}
"""

FAULTY = """\
study: faulty
system:
  service:
    run: PYTHON EXPORTER {numbers} FAULT 1
    ready: {port: numbers}
    ports: [numbers]
workload: {command: {run: sleep 2}}
factors: {arm: {a: {}, b: {workload: {command: {run: sleep 2.1}}}}}
arm: arm
trials: {blocks: 1, voided_limit: 0}
telemetry: {prometheus: {url: "http://{host}:{numbers}/metrics", interval: 2s}}
metrics: {primary: PRIMARY, ticks: {prometheus: rate(ticks_total), unit: 1/s, better: higher}}
"""


def faulty(here: Desk, fault: str, *, primary: str) -> Path:
    """The study, with an exporter that a user of servers can run wherever this Python and these tests are."""
    here.directory.chmod(0o755)
    script = here.directory / "exporter.py"
    script.write_bytes(Path(exporter.__file__).read_bytes())
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") if os.geteuid() == 0 else None
    text = FAULTY.replace("PYTHON", python or sys.executable).replace("EXPORTER", str(script))
    return here.study(text.replace("FAULT", fault).replace("PRIMARY", primary))


def test_a_metric_of_a_real_exporters_counters_decides_a_study(here: Desk) -> None:
    require("prometheus-node-exporter")
    here.fairtrial("run", here.study(NODE))
    found = record.read(here.run)
    forks = {}
    errors = {}
    for trial in found.trials:
        assert trial.invalid_reason == ""
        assert {"prometheus-1", "command-1"} <= set(trial.telemetry)
        assert trial.window is not None
        seconds = (trial.window.end_ns - trial.window.start_ns) / 1e9
        forks[trial.trial.arm] = trial.scalars["forks"]
        errors[trial.trial.arm] = trial.scalars["forks_error"]
        assert trial.scalars["starts"] == pytest.approx(trial.scalars["forks"] / seconds)
        assert trial.scalars["forks_error"] >= trial.scalars["starts_error"] >= 0
        assert trial.scalars["load1"] > 0
        cpu = telemetry.read(found.trial_directory(trial.trial.id), "cpu")["forks"]
        least = trial.scalars["forks"] - trial.scalars["forks_error"]
        assert least <= 1.2 * (cpu[-1] - cpu[0]), "the kernel's own counter, read at other moments"
    for arm, own in (("short", 20), ("long", 1000)):  # beside those of everybody else
        assert forks[arm] + errors[arm] >= own, "an edge between two readings may have cut some off"
    here.fairtrial("verify", here.run)
    report = here.fairtrial("report", here.run).stdout
    assert "processes started" in report


def test_an_exporter_by_tls_is_read_where_its_certificate_is_named(here: Desk) -> None:
    require("prometheus-node-exporter")
    here.directory.chmod(0o755)
    certificate, key, web = (here.directory / name for name in ("certificate.pem", "key.pem", "web.yml"))
    names = ["-subj", "/CN=exporter", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names, "-keyout", key, "-out", certificate]
    subprocess.run(made, check=True, capture_output=True)
    web.write_text(f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\n")
    for file in (certificate, key, web):
        file.chmod(0o644)
    text = NODE.replace("exporter --web", f"exporter --web.config.file={web} --web")
    text = text.replace('url: "http:', f'authorities: {certificate}, url: "https:')
    here.fairtrial("run", here.study(text))
    for trial in record.read(here.run).trials:
        assert trial.invalid_reason == ""
        assert trial.scalars["forks"] > 0


@pytest.mark.parametrize("fault", ["silent", "large", "binary"])
def test_an_exporter_that_goes_wrong_invalidates_a_trial_whose_metric_needs_it(here: Desk, fault: str) -> None:
    here.fairtrial("run", faulty(here, fault, primary="ticks"), code=None)
    (trial,) = record.read(here.run).trials[:1]
    reason = "metric ticks cannot be computed: readings are missing at an edge of the measurement window"
    assert trial.invalid_reason == reason


def test_an_exporter_that_goes_wrong_costs_other_metrics_nothing_and_raises_a_doubt(here: Desk) -> None:
    done = here.fairtrial("run", faulty(here, "binary", primary="elapsed_s"))
    for trial in record.read(here.run).trials:
        assert trial.invalid_reason == ""
        assert trial.scalars["series_samples_missed"] >= 1
        assert "ticks" not in trial.scalars
    assert "endpoints or commands gave nothing at some readings" in " ".join(done.stdout.split())


def test_an_endpoint_that_never_answers_ends_a_run_before_its_first_load(here: Desk) -> None:
    study = faulty(here, "''", primary="ticks")
    dead = f"http://127.0.0.1:{free_port()}/metrics"
    study.write_text(study.read_text().replace("http://{host}:{numbers}/metrics", dead))
    done = here.fairtrial("run", study, code=3)
    assert dead in done.stderr
    assert record.read(here.run).trials == ()


def test_what_prometheus_mysqld_exporter_tells_is_what_the_server_says(here: Desk) -> None:
    require("prometheus-mysqld-exporter")
    require("mariadbd")
    port = free_port()
    with place_here(here.directory) as place:
        place.server_user = opening._server_user(place) if os.geteuid() == 0 else None
        work = workspace.work_directory(place, "exporting")
        out = Path(work / "out")
        workspace.make(place, work / "out" / "log")
        for directory in ("data", "server"):
            workspace.make_private(place, work / directory, user=place.server_user)
        mariadb = Mariadb(MariadbParameters())
        launch = Launch(
            data_directory=work / "data", work_directory=work / "server", log_path=work / "out" / "log" / "server.log"
        )
        mariadb.create(place, launch)
        instance = mariadb.start(place, launch)
        assert isinstance(instance.endpoint, MysqlEndpoint)
        words = ["prometheus-mysqld-exporter", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        source = f"{instance.endpoint.user}@unix({instance.endpoint.socket})/"
        environment = {**os.environ, "PATH": SERVERS, "DATA_SOURCE_NAME": source}
        with subprocess.Popen(words, env=environment, start_new_session=True) as told:
            try:
                endpoint = Exporter(url=f"http://127.0.0.1:{port}/metrics", match=["mysql_global_status_*"])
                plan = tiny_plan().model_copy(update={"exporters": [endpoint], "telemetry_interval_ms": 10_000})
                sampler = sampling.Sampler(place, sampling.request(work / "out", instance, plan=plan))
                statements = [f"create table mysql.t{number} (i int)" for number in range(40)]
                in_mysql = instance.endpoint.model_copy(update={"database": "mysql"})
                place.native(SQL, Sql(endpoint=in_mysql, statements=statements), timeout_s=PATIENCE_S)
                assert sampler.stop() == "", "it reads once more"
            finally:
                told.kill()
        mariadb.stop(place, instance, settled=False)
    sampling.to_parquet(out)
    rows = pl.read_parquet(out / "telemetry-prometheus-1.parquet")
    created = rows.filter(pl.col("series") == 'mysql_global_status_commands_total{command="create_table"}')
    assert created["type"].unique().to_list() == ["counter"]
    assert created["value"][-1] - created["value"][0] == 40
    questions = rows.filter(pl.col("series") == "mysql_global_status_questions")["value"]
    own = telemetry.read(out, "server")["questions"]
    assert abs(questions[-1] - own[-1]) < 100, "both ask, and neither asks more than a few questions in a second"
