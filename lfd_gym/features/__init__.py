"""Features of occupancy measures and of values, finite and over observations."""
