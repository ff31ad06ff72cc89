"""Many hosts for one run: blocks handed out, each to one host, and what comes back committed by this process alone."""
