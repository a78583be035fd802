"""What results mean, read from their documents alone: nothing here runs, so any stored result can be analysed again."""
