"""Measuring: the parent conducts (`session`), one worker process a sample obeys (`worker`)."""
