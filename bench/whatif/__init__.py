"""The what-ifs: changes to a program that an explanation tries."""
