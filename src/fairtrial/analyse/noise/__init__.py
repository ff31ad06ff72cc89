"""How noisy a place is: profiles of A/A runs, and the floor that they put beneath every comparison made there."""
