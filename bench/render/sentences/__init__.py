"""Sentences about documents. Each sentence exists once, and every output that says it takes it from here."""
