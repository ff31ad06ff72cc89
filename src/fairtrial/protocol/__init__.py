"""Messages between the two languages, generated from the Rust types: the ground floor, open to every room."""
