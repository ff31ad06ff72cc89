"""A screening of commands: rows run, effects reported, the record verified, the strongest confirmed in pairs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.command_line import Desk
from support.skips import needs

STUDY = """\
study: screened
question: Which of three variables make this program slow?
workload:
  command:
    run: >-
      awk 'BEGIN {{ srand(); print "speed " 100 * ("A" in ENVIRON ? 1.5 : 1) * (1 + rand() / 50) }}'
    metrics: {speed: {regex: 'speed ([0-9.]+)', unit: 1/s, better: higher}}
factors:
  a: {off: {}, on: {settings: {environment: {A: '1'}}}}
  b: {off: {}, on: {settings: {environment: {B: '1'}}}}
  c: {off: {}, on: {settings: {environment: {C: '1'}}}}
trials: {design: plackett_burman, blocks: 2}
metrics: {primary: speed}
""".replace("{{", "{").replace("}}", "}", 1)
