"""HammerDB's output: one row per TEST RESULT, with the virtual users that it had. Source: mysqloltp.tcl, pgoltp.tcl."""

from __future__ import annotations

import re
from typing import Final

from fairtrial.imports.reader import Figure, ImportSource, Reader, file_table, metric, refused, summarised
from fairtrial.imports.rows import FileTable

VALUE: Final = "nopm"
SOURCE: Final = "HammerDB"
EXPECTED: Final = "HammerDB's output with its lines TEST RESULT"
_RESULT: Final = (
    re.compile(r"TEST RESULT : System achieved (?P<nopm>\d+) NOPM from (?P<tpm>\d+) .{1,40} TPM"),
    re.compile(r"TEST RESULT : System achieved (?P<tpm>\d+) .{1,40} TPM at (?P<nopm>\d+) NOPM"),
)
_FAILED: Final = "FINISHED FAILED"
_USERS: Final = re.compile(r"\b(\d{1,9}) Active Virtual Users configured")
_HINT: Final = "give HammerDB's whole output, of runs that ended"


def read(source: ImportSource) -> FileTable:
    """Rows in the order of results.

    Raises:
        InputError: a result is cut, there is none, or a virtual user failed.
    """
    rows: list[dict[str, Figure]] = []
    users = ""
    for number, line in enumerate(source.text.splitlines(), start=1):
        if found := _USERS.search(line):
            users = found[1]
        if _FAILED in line:
            hint = "leave the run out: it had fewer virtual users than configured"
            raise refused(
                source, f"expected virtual users that succeed, found {line.strip()!r}", hint=hint, line=number
            )
        if "TEST RESULT" not in line:
            continue
        match = next((match for each in _RESULT if (match := each.search(line))), None)
        if match is None:
            message = f"expected a result in NOPM and TPM, found {line.strip()!r}"
            raise refused(source, message, hint=_HINT, line=number)
        rows.append({"virtual_users": users, VALUE: float(match["nopm"]), "tpm": float(match["tpm"])})
    if not rows:
        last = len(source.text.splitlines())
        raise refused(source, "the output ends without a TEST RESULT", hint=_HINT, line=last)
    units = {VALUE: "new orders/min", "tpm": "transactions/min"}
    return file_table(source, rows, lambda name: metric(name, units[name], "higher", source=SOURCE))


READER: Final = Reader(
    name="hammerdb",
    expected=EXPECTED,
    recognises=lambda text: "TEST RESULT : " in text or text.startswith("HammerDB") or "Vuser 1:" in text,
    read=read,
    values=(VALUE,),
    conditions=("virtual_users",),
    lost=summarised(
        "each run of HammerDB is one rate, of two counts divided by whole minutes: stalls within a run are lost"
    ),
)
