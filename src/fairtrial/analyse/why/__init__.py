"""What changed with the arm, as far as counters can say."""
