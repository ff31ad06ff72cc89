"""Claims of a publication, one kind to a file."""
