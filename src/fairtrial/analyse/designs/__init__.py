"""What designed experiments say beyond single comparisons: pure inference, with the models of its results."""
