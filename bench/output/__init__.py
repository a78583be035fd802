"""Everything a result becomes: files, tables, JSON."""
