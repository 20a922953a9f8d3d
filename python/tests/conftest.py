"""Fixtures of these tests."""

from serving import serve as serve
