"""Receive logs over HTTP, and write them into the inbox."""
