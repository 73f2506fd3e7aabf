"""What a line of a file with names says: an address, a size (0: not known), the letter that nm would have, a name."""

Entry = tuple[int, int, str, str]

FUNCTION, DATA, LABEL = "T", "D", "n"  # letters for those who say what it is
