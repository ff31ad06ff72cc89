"""What text, page, figures and R say of designed experiments."""
