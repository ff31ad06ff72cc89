"""Reference pages made from the code. Not part of the wheel: `scripts/generate-reference` runs it."""
