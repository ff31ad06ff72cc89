"""Services: real daemons as the system under test, and what keeps one from being it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import PATIENCE_S, Desk, desk, eventually
from support.machines.ssh_host import free_port
from support.skips import require

from fairtrial import record
from fairtrial.report.analysing import analysed

STUDIES = Path(__file__).parents[2] / "studies"
pytestmark = pytest.mark.servers

# A listener of its own beside data that each trial adds to: what it finds there, it was given.
COUNTING = """\
study: counting
system:
  service:
    run: sh -c 'echo listening on {first} and {second}; exec sleep 600'
    user: nobody
    ports: [first, second]
    configuration: {format: ini, text: "; written for {data}"}
    options: {server.level: 3}
    read_back: sed -n "s/^level = //p" {config}
    environment: {HOME: "{work}"}
    stop: sh -c 'echo stopping >{data}/stopped; kill $(pgrep -P $PPID sleep) || true'
    data: {create: ["sh -c 'echo made >>{data}/lines'"]}
workload:
  command:
    run: sh -c 'echo more >>$FAIRTRIAL_DATA/lines; echo "lines $(wc -l <$FAIRTRIAL_DATA/lines) port $FAIRTRIAL_PORT"'
    metrics: {lines: {regex: 'lines (\\d+)'}, port: {regex: 'port (\\d+)'}}
factors: {level: {three: {}, four: {system: {service: {options: {server.level: 4}}}}}}
arm: level
trials: {blocks: 2, seed: 2}
metrics: {primary: lines, secondary: [port]}
"""

BROKEN = """\
study: broken
system: {{service: {{ports: [redis], ready_timeout: 3s, {service}}}}}
workload: {{command: {{run: "{load}"}}}}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: "{load} b"}}}}}}}}}}
arm: arm
trials: {{blocks: 1, voided_limit: 0}}
metrics: {{primary: elapsed_s}}
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a service to stop."""
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "shutdown_s=1")


def scalars(here: Desk, name: str) -> dict[str, list[float]]:
    """A metric of the one run here, by arm."""
    values: dict[str, list[float]] = {}
    for trial in record.read(here.run).trials:
        assert trial.invalid_reason == ""
        values.setdefault(trial.trial.arm, []).append(trial.scalars[name])
    return values


def test_every_trial_starts_from_the_same_data_with_its_options_and_free_ports(here: Desk) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port := free_port()))
        taken.listen()
        here.fairtrial("run", here.study(COUNTING))
    assert scalars(here, "lines") == {"three": [2.0, 2.0], "four": [2.0, 2.0]}
    assert port not in {port for ports in scalars(here, "port").values() for port in ports}
    found = record.read(here.run)
    assert {trial.trial.arm: trial.options["server.level"] for trial in found.trials} == {"three": "3", "four": "4"}
    assert "data_not_compared" not in [doubt.code for doubt in analysed(found).doubts]
    for trial in found.trials:
        (words,) = (found.trial_directory(trial.trial.id) / "log" / "server.log").read_text().splitlines()
        first, second = (int(word) for word in words.split() if word.isdigit())
        assert first != second
    here.fairtrial("verify", here.run)


def test_redis_writes_every_command_at_once_where_it_is_told_to(here: Desk) -> None:
    require("redis-server")
    here.fairtrial("run", STUDIES / "redis-appendfsync.yaml", "--size", "ci", "--set", "telemetry.interval=500ms")
    trials = {trial.trial.arm: trial for trial in record.read(here.run).trials}
    assert {arm: trial.options["appendfsync"] for arm, trial in trials.items()} == {
        "everysec": "everysec",
        "always": "always",
    }
    assert trials["everysec"].system_facts["version"].startswith("Redis server v=")
    # Eight clients: at most eight of 10,000 commands share a write, and a disk writes 512 bytes at least.
    assert trials["always"].scalars["disk_written_bytes"] > 10_000 / 8 * 512


def test_nginx_reads_a_file_32_times_through_buffers_and_once_by_sendfile(here: Desk) -> None:
    for program in ("nginx", "wrk"):
        require(program)
    text = (STUDIES / "nginx-sendfile.yaml").read_text(encoding="utf-8").replace("-d2s", "-d1s")
    here.fairtrial("run", here.study(text), "--size", "ci", "--set", "factors.workers.one=null")
    assert scalars(here, "reads_per_1000_requests").keys() == {"off", "on"}
    for arm, each, share in (("off", 32, 0.05), ("on", 1, 0.2)):
        (log,) = (here.run / "trials").glob(f"*.{arm}/log/load.log")
        told = json.loads(log.read_text().splitlines()[-1])
        # Of up to eight requests, one per connection, wrk heard no end: few of those that a free processor answers.
        assert each * (1 - share) <= told["reads"] / told["requests"]
        assert told["reads"] / (told["requests"] + 8) <= each * (1 + share)
    summary = json.loads((here.run / "report" / "report.json").read_text())
    assert summary, "a report was made"


@pytest.mark.parametrize(
    ("service", "says"),
    [
        ("run: sh -c 'echo cannot open the store; sleep 60', ready: {port: redis}", "cannot open the store"),
        ("run: sh -c 'echo x; exit 3', ready: {port: redis}", "exited during startup; the end of its log:\nx"),
        (
            "run: \"sh -c 'sleep 60' {options}\", configuration: {format: flags}, options: {x: 3}, read_back: echo 2",
            "x: expected 3, the service reports 2",
        ),
        ("run: no-such-daemon, ready: {port: redis}", "install no-such-daemon at the place"),
        ("run: sleep 60, data: {create: ['sh -c false']}", "fix system.service.data"),
        ("run: sh -c 'echo no room; sleep 60', ready: {port: redis}, stop: sleep 60", "no room"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_a_service_that_does_not_come_up_as_asked_ends_the_run_with_its_words(
    here: Desk, service: str, says: str
) -> None:
    done = here.fairtrial("run", here.study(BROKEN.format(service=service, load="true")), code=3)
    assert says in done.stderr


def test_a_service_is_ready_when_its_page_answers_with_success(here: Desk) -> None:
    """Its page says 503 at first."""
    daemon = """\
import http.server, itertools, sys
asked = itertools.count()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if next(asked) else 503)
        self.end_headers()
    def log_message(self, form, *values):
        print(form % values, flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""
    (here.directory / "daemon.py").write_text(daemon)
    service = f"run: 'python3 {here.directory}/daemon.py {{redis}}', ready: {{http: 'http://{{host}}:{{redis}}/x'}}"
    text = BROKEN.format(service=service, load="true").replace("ready_timeout: 3s", "ready_timeout: 5min")
    here.fairtrial("run", here.study(text))
    found = record.read(here.run)
    log = (found.trial_directory(found.trials[0].trial.id) / "log" / "server.log").read_text().splitlines()
    assert '"GET /x HTTP/1.1" 503 -' in log[0]
    assert '"GET /x HTTP/1.1" 200 -' in log[-1]


def test_a_port_that_another_program_took_meanwhile_is_not_taken_for_the_services(here: Desk) -> None:
    """A process of its own session stands for the other program: it is none of the service's."""
    squat = """\
import pathlib, socket, sys, time
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
pathlib.Path(sys.argv[2]).touch()
time.sleep(60)
"""
    (here.directory / "squat.py").write_text(squat)
    started = f"setsid --fork python3 {here.directory}/squat.py {{redis}} {{work}}/taken"
    service = f'run: "sh -c \'{started}; exec sleep 60\'", ready: {{command: "test -e {{work}}/taken"}}'
    text = BROKEN.format(service=service, load="true").replace("ready_timeout: 3s", "ready_timeout: 5min")
    done = here.fairtrial("run", here.study(text), code=3)
    assert "(redis) is another program's" in done.stderr


@pytest.mark.usefixtures("quick")
def test_what_hangs_while_it_should_stop_a_service_costs_no_trial(here: Desk) -> None:
    here.fairtrial("run", here.study(BROKEN.format(service="run: sleep 60, stop: sleep 50", load="true")))
    assert [trial.invalid_reason for trial in record.read(here.run).trials] == ["", ""]


def test_data_are_made_anew_where_what_makes_them_differs(here: Desk) -> None:
    """By text and environment, which are no options."""
    text = COUNTING.replace(
        "data: {create: [\"sh -c 'echo made >>{data}/lines'\"]}", "data: {create: ['touch {data}/lines']}"
    )
    text = text.replace(
        "four: {system: {service: {options: {server.level: 4}}}}", "four: {system: {service: {environment: {A: b}}}}"
    )
    here.fairtrial("run", here.study(text))
    found = record.read(here.run)
    assert len({trial.data.key for trial in found.trials}) == 2
    (doubt,) = (each for each in analysed(found).doubts if each.code == "data_not_compared")
    assert "(four, three in all)" in doubt.message


def test_a_crash_in_a_trial_voids_it_with_the_last_lines_of_the_log(here: Desk) -> None:
    service = "run: \"sh -c 'echo out of handles; echo $$ >{data}/pid; exec sleep 60'\""
    load = "sh -c 'until kill $(cat $FAIRTRIAL_DATA/pid); do sleep 0.05; done; sleep 0.2'"
    done = here.fairtrial("run", here.study(BROKEN.format(service=service, load=load)), code=3)
    assert "has lost 1 block," in done.stderr
    reason = record.read(here.run).trials[0].invalid_reason
    assert reason.startswith("the server ended during the trial (signal SIGTERM)")
    assert reason.endswith("the end of server.log: out of handles")


THERE = """\
study: there
system:
  service:
    at: {{host: 127.0.0.1, ports: {{redis: {port}}}}}
    version: sh -c 'redis-cli -h {{host}} -p {{redis}} INFO server | grep redis_version'
    ready: {{command: 'redis-cli -p {{redis}} ping'}}
    options: {{maxmemory-policy: allkeys-lru}}
    read_back: redis-cli -p {{redis}} CONFIG GET {{option}}
    set_by: redis-cli -p {{redis}} -e CONFIG SET {{option}} {{value}}
workload: {{command: {{run: "{load}"}}}}
factors: {{policy: {{lru: {{}}, lfu: {{system: {{service: {{options: {{maxmemory-policy: allkeys-lfu}}}}}}}}}}}}
arm: policy
trials: {{blocks: 1, seed: 3, voided_limit: 0}}
metrics: {{primary: elapsed_s}}
"""


@pytest.fixture
def redis(here: Desk) -> Iterator[int]:
    """The port of a Redis that is there already, with a policy of its own."""
    require("redis-server")
    port = free_port()
    options = ["--port", str(port), "--save", "", "--dir", str(here.directory), "--maxmemory-policy", "volatile-ttl"]
    # In a session of its own, as runs are: what stops the tests for a while stops no server.
    with subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL, start_new_session=True) as server:
        try:
            eventually(lambda: policy(port) == "volatile-ttl", "redis-server does not start")
            yield port
        finally:
            server.terminate()


def policy(port: int) -> str:
    asked = ["redis-cli", "-p", str(port), "CONFIG", "GET", "maxmemory-policy"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip().rpartition("\n")[2]


def test_a_service_that_is_there_is_set_read_back_and_has_its_own_options_again(here: Desk, redis: int) -> None:
    load = "sh -c 'redis-cli -p $FAIRTRIAL_REDIS CONFIG GET maxmemory-policy | grep allkeys'"
    here.fairtrial("run", here.study(THERE.format(port=redis, load=load)))
    found = record.read(here.run)
    assert [trial.invalid_reason for trial in found.trials] == ["", ""]
    assert {trial.trial.arm: trial.options["maxmemory-policy"] for trial in found.trials} == {
        "lru": "allkeys-lru",
        "lfu": "allkeys-lfu",
    }
    assert policy(redis) == "volatile-ttl"
    assert "redis_version" in found.trials[0].system_facts["version"]
    assert "what the trials before them had left" in " ".join((here.run / "report" / "report.txt").read_text().split())


def test_after_a_kill_the_next_look_gives_a_service_that_is_there_its_own_options_back(here: Desk, redis: int) -> None:
    run = here.start("run", here.study(THERE.format(port=redis, load="sleep 60")))
    eventually(lambda: policy(redis).startswith("allkeys"), "no option was set")
    for pid in (run.pid, here.agent_pid()):
        os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=PATIENCE_S)
    eventually(lambda: not here.processes(), "something goes on")
    here.fairtrial("doctor", code=None)
    assert policy(redis) == "volatile-ttl"


def test_a_second_study_of_a_service_is_refused_and_a_later_one_told_what_a_dead_one_left(
    here: Desk, redis: int
) -> None:
    text = THERE.format(port=redis, load="sleep 60")
    run = here.start("run", here.study(text))
    eventually(lambda: policy(redis).startswith("allkeys"), "no option was set")
    with desk() as other:
        refused = other.fairtrial("run", other.study(text.replace("127.0.0.1", "localhost")), code=3).stderr
        assert f"another study uses the service at localhost:{redis}" in refused
        assert here.run.name in refused
        for pid in (run.pid, here.agent_pid()):
            os.kill(pid, signal.SIGKILL)
        run.communicate(timeout=PATIENCE_S)
        eventually(lambda: not here.processes(), "something goes on")
        refused = other.fairtrial("run", other.study(text), code=3).stderr
        restoring = f"{{local: {{state_directory: {here.state}}}}}"
        assert f"`fairtrial doctor '{restoring}'` restores them" in " ".join(refused.split())
        other.fairtrial("doctor", restoring, code=None)
    assert policy(redis) == "volatile-ttl"


def test_what_somebody_else_sets_meanwhile_voids_a_trial(here: Desk, redis: int) -> None:
    load = "sh -c 'redis-cli -p $FAIRTRIAL_REDIS CONFIG SET maxmemory-policy noeviction'"
    here.fairtrial("run", here.study(THERE.format(port=redis, load=load)), code=3)
    reason = record.read(here.run).trials[0].invalid_reason
    assert reason == "changed by another process during the trial: maxmemory-policy"


def test_a_service_that_is_not_there_is_named(here: Desk) -> None:
    text = THERE.format(port=1, load="true").replace("    options:", "    ready_timeout: 1s\n    options:")
    done = here.fairtrial("run", here.study(text), code=3)
    assert "redis-cli -h 127.0.0.1 -p 1 INFO server | grep redis_version` failed" in done.stderr
