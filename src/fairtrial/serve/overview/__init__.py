"""Pages about many runs: the list, what differs between some, series over time, studies that could be run."""
