"""The sub-commands of ``lfd-gym``."""
