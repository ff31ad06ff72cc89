"""Change points by Apache Otava, for benches/history.py, which runs this file with an interpreter that has it.

Series on standard input as JSON lists, indices of change points on standard output in the same form.
"""

import json
import sys

from otava.analysis import compute_change_points

json.dump(
    [[point.index for point in compute_change_points(series)[0]] for series in json.load(sys.stdin)],
    sys.stdout,
    default=int,
)
