"""The live page: runs in a browser, on this machine, for the user who started it.

It reads records as `fairtrial.live` follows them and sends what changed. It must not decide anything about a run.
"""
