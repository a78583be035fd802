"""Sending to a hub: `spool` notes on disk what a hub has not got yet, `client` speaks to it, `sender` does both.

A result is on disk before anything is sent. Nothing here runs while a block is timed but a heartbeat of some
hundred bytes.
"""
