"""The wire: finding an agent's binary, talking to an agent, and the messages themselves.

Owns the stream's Python side. It must not know how a stream is got (`places`), nor what is done with one.
"""

from fairtrial.wire.agent import Agent, Process
from fairtrial.wire.find import find_agent
from fairtrial.wire.limits import Limits
from fairtrial.wire.native import run_native
from fairtrial.wire.transport import PipeTransport, Transport

__all__ = ["Agent", "Limits", "PipeTransport", "Process", "Transport", "find_agent", "run_native"]
