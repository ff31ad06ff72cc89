"""Draws Vega-Lite specifications, a line of JSON each, as SVG: a program of its own, as vl-convert holds the GIL.

Answers each line with how many bytes follow, and these. Knows nothing of this package, so that it starts quickly.
"""

import sys

import vl_convert


def main(vega_lite_version: str) -> None:
    """Serves until the input ends."""
    for line in sys.stdin.buffer:
        drawn = vl_convert.vegalite_to_svg(line.decode(), vl_version=vega_lite_version).encode()
        sys.stdout.buffer.write(b"%d\n%s" % (len(drawn), drawn))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
