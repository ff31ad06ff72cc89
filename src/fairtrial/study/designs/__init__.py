"""What a study says of designs beyond pairs of arms."""
