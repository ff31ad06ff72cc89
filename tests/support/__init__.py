"""What tests share: builders of small, real objects."""
