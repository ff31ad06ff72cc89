"""Reasons to trust a result less. They never change a verdict."""
