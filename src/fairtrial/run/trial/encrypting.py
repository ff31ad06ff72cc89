"""A certificate for one trial's server: by an authority that is made for it, signs it, and loses its key at once.

Owns what openssl(1) is told at the system's place, which no key leaves.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import AgentError, PlaceError
from fairtrial.settings.steps.effect import Requirement
from fairtrial.systems import Certificate
from fairtrial.wire.open_place import OpenPlace

HINT: Final = "install openssl at the system's place (Debian: `apt install openssl`), or leave `tls` out"
NEEDED: Final = Requirement("workload.tls", "openssl", HINT)
# Valid whatever the hosts' clocks say: it is as old as the trial, and so is the authority that clients are given.
VALID: Final = ("20000101000000Z", "20991231235959Z")
CONFIGURATION: Final = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = fairtrial
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
authorityKeyIdentifier = keyid
subjectAltName = {names}
[ca]
default_ca = trial
[trial]
database = index
serial = serial
new_certs_dir = .
policy = any
default_md = sha256
[any]
commonName = supplied
"""
MAKE: Final = """\
set -eu
umask 077
mkdir -p "$1"
cd "$1"
printf %s "$4" >openssl.cnf
: >index
echo 01 >serial
new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -config openssl.cnf'
openssl req -x509 $new -extensions authority -days 36500 -keyout authority.key -out authorities.pem
openssl req $new -subj /CN=server -keyout server.key -out server.csr
openssl ca -batch -notext -config openssl.cnf -extensions server -startdate "$2" -enddate "$3" \\
    -keyfile authority.key -cert authorities.pem -in server.csr -out server.pem
rm -f authority.key server.csr index* serial* 01.pem
"""


def certificate(
    place: OpenPlace, directory: PurePosixPath, addresses: Sequence[str], *, user: str | None
) -> Certificate:
    """Makes a certificate for a server at these addresses.

    Args:
        place: the system's.
        directory: for its files, which only the user may read; made by the user, who may have left a link there.
        addresses: or names, by which clients reach the server.
        user: that the server runs as; None: the agent's own.

    Raises:
        PlaceError: openssl is not there, or fails, in its own words.
    """
    names = ", ".join(f"{'IP' if _is_ip(address) else 'DNS'}:{address}" for address in addresses)
    argv = ["sh", "-c", MAKE, "sh", str(directory), *VALID, CONFIGURATION.format(names=names)]
    try:
        place.require(argv, hint=HINT, user=user)
    except AgentError as error:
        raise PlaceError(f"no certificate can be made: {error}", hint=HINT) from error
    return Certificate(
        authorities=directory / "authorities.pem", certificate=directory / "server.pem", key=directory / "server.key"
    )


def authorities(place: OpenPlace, certificate: Certificate, *, user: str | None) -> bytes:
    """Who signed it, for clients, as the server's user reads it.

    Raises:
        PlaceError: it is not there any more.
    """
    return place.require(["cat", "--", str(certificate.authorities)], hint=HINT, user=user).encode() + b"\n"


def _is_ip(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True
