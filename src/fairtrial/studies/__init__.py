"""Ready studies and the published data they re-run, as package data."""
