"""What takes numbers and returns a solution; knows no environment."""
