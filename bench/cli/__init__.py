"""The command line: the program, what all commands share, and one file per command."""
