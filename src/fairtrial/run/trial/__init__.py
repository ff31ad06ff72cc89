"""One trial: from prepared data to a committed directory."""
