"""What acts: tables, tiles, networks, mixtures, functions, and their files."""
