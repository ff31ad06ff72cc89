"""A certificate for a trial's server: made by openssl, signed by an authority whose key is gone."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from support.machines.places import place_here, place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.run.trial import encrypting
from fairtrial.wire.fake import FakeProgram


def test_a_certificate_is_for_the_addresses_and_nobody_can_sign_another(tmp_path: Path) -> None:
    directory = tmp_path / "tls"
    with place_here(tmp_path) as place:
        made = encrypting.certificate(place, PurePosixPath(directory), ["10.0.0.1", "db-1"], user=None)
        assert encrypting.authorities(place, made, user=None) == Path(made.authorities).read_bytes()
    argv = ["openssl", "verify", "-CAfile", str(made.authorities), "-purpose", "sslserver", "-verify_ip", "10.0.0.1"]
    for verify in (argv, [*argv[:-2], "-verify_hostname", "db-1"]):
        subprocess.run([*verify, str(made.certificate)], check=True, capture_output=True)
    wrong = subprocess.run([*argv[:-1], "10.0.0.2", str(made.certificate)], check=False, capture_output=True)
    assert wrong.returncode != 0
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(made.certificate), str(made.key))
    assert (Path(made.key).stat().st_mode | directory.stat().st_mode) & 0o077 == 0
    assert {each.name for each in directory.iterdir()} == {
        "authorities.pem",
        "openssl.cnf",
        "server.key",
        "server.pem",
    }


def test_a_place_without_openssl_is_told_so() -> None:
    def run(_spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=127, stdout=["sh: 1: openssl: not found"])

    with place_in_memory(run) as (place, _), pytest.raises(PlaceError, match="openssl: not found") as refused:
        encrypting.certificate(place, PurePosixPath("/tls"), ["db-1"], user=None)
    assert "apt install openssl" in refused.value.hint


def test_root_does_nothing_in_a_directory_where_the_servers_user_may_have_left_a_link() -> None:
    with place_in_memory() as (place, fake):
        made = encrypting.certificate(place, PurePosixPath("/w/server/tls"), ["db-1"], user="fairtrial")
        encrypting.authorities(place, made, user="fairtrial")
        asked = [each for each in fake.requests if isinstance(each, wire.Spawn)]
    assert [each.user for each in asked] == ["fairtrial"] * 2
    assert fake.files == {}
