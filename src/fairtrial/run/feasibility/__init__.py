"""What a study needs and a place lacks: found out before anything starts."""
