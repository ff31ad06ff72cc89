"""A page that is there for one run ends when the run has ended and nobody has looked for a while."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support.command_line import PATIENCE_S

from fairtrial.serve import server
from fairtrial.serve.loading import load
from fairtrial.serve.server import Listening


def test_it_ends_a_while_after_the_run_and_the_last_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TICK_S", 0.05)
    load()  # else a thread as nice as the page would, and what comes later in this process waits for it
    page = Listening(tmp_path)
    needed = threading.Event()
    needed.set()
    # In a thread of its own: niceness is a thread's.
    serving = threading.Thread(target=page.serve, kwargs={"kept_s": 0.4, "needed": needed.is_set})
    serving.start()
    time.sleep(1.0)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{page.port}/")
    assert serving.is_alive(), "it is needed"
    needed.clear()
    serving.join(PATIENCE_S)  # nice as it is, it hardly runs beside what takes all processors
    assert not serving.is_alive()
