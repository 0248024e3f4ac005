"""What acts: tables, tiles, networks, functions, and their files."""
