"""Demonstrations: collecting, keeping, converting and measuring them."""
