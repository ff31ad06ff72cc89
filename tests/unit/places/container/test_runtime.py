from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.command_line import shell_program

from fairtrial.errors import PlaceError
from fairtrial.places.container import runtime as container_runtime
from fairtrial.places.container.parameters import ContainerParameters
from fairtrial.places.container.runtime import NewContainer, Runtime


def parameters(**given: object) -> ContainerParameters:
    return ContainerParameters.model_validate({"image": "localhost/db:1", **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": "--privileged"}, "image"),
        ({"memory": "1MiB"}, "memory"),
        ({"cpus": 0}, "cpus"),
        ({"run_options": ["--name=mine"]}, "--name is set by fairtrial itself"),
        ({"run_options": ["-v", "/a:/b"]}, "'-v': write option and value as one word"),
        ({"run_options": ["--hostname"]}, "'--hostname': write option and value as one word"),
        ({"run_options": ["-td"]}, "'-td': write option and value as one word"),
        ({"run_options": ["--env=PASSWORD=x"]}, "would stand in the record"),
        ({"runtime": "lxc"}, "runtime"),
        ({"state_directory": "/srv/a,b"}, "state_directory\n.*a path with a comma cannot be mounted"),
        ({"pull": "always"}, "pull"),
        ({"sha256": "a" * 63}, "sha256"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        parameters(**given)


def test_limits_and_the_users_options_are_passed_on() -> None:
    options = Runtime(parameters(cpus=1.5, memory="64MiB", run_options=["--ulimit=nofile=99:99"])).options()
    assert options[:2] == ["--network=none", "--pull=never"]
    assert {"--cpus=1.5", "--memory=67108864", "--memory-swap=67108864", "--ulimit=nofile=99:99"} <= set(options)
    assert sum(option.startswith("--ulimit=nofile") for option in options) == 1


@pytest.mark.parametrize(
    ("runtime", "begins"),
    [("podman", ["podman", "--runtime=runc", "run"]), ("docker", ["docker", "run", "--runtime=runc"])],
)
def test_the_oci_runtime_stands_where_each_runtime_takes_it(runtime: str, begins: list[str]) -> None:
    """podman(1): a global option; docker run(1): an option of `run`."""
    assert Runtime(parameters(runtime=runtime, oci_runtime="runc")).argv("run", "--rm")[:3] == begins


def test_an_image_with_another_hash_than_the_study_says_is_refused_with_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell_program(tmp_path / "podman", f"echo sha256:{'a' * 64}")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(container_runtime, "_IMAGES", {})
    assert Runtime(parameters(sha256="a" * 64)).image_id == "a" * 64
    with pytest.raises(PlaceError, match=f"localhost/db:1 has the SHA-256 {'a' * 64}: expected 000") as refused:
        _ = Runtime(parameters(sha256="0" * 64)).image_id
    assert refused.value.field == "place.container.image"


def test_a_runtime_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlaceError, match=r"no podman on this machine's PATH \(/nowhere\)") as error:
        _ = Runtime(parameters()).image_id
    assert "install podman" in error.value.hint


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("OCI runtime error: crun: cgroups in hybrid mode not supported", "install runc"),
        ("crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted", "--ulimit=nofile"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "DOCKER_HOST"),
        ("something else", "podman run --rm localhost/db:1 true"),
    ],
)
def test_what_a_runtime_says_has_a_remedy(said: str, hint: str) -> None:
    assert hint in Runtime(parameters()).hint(said)


def test_a_path_with_a_comma_is_not_mounted() -> None:
    container = NewContainer(name="a", label="b", mounts={"/srv/a,b": "/state"}, environment={}, command=["c"])
    with pytest.raises(PlaceError, match="/srv/a,b cannot be mounted: its name has a comma"):
        Runtime(parameters()).run_argv(container)
