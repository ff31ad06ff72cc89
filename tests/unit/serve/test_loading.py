"""Loading what pages are made from: threads that begin at different modules would get modules that are half there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WHILE_LOADING = """
import sys, threading
from pathlib import Path
from fairtrial.serve import loading
from fairtrial.serve.overview.index import Index

index = threading.Thread(target=Index(Path(sys.argv[1]))._read, args=({},))
with loading._LOCK:
    index.start()
    index.join(0.3)
    print(index.is_alive(), "fairtrial.serve.overview.summarising" in sys.modules)
index.join()
print("fairtrial.serve.overview.summarising" in sys.modules)
"""


def test_the_list_of_runs_imports_nothing_while_another_thread_loads(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WHILE_LOADING, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "True"]
