"""Fixtures of these tests."""

from serving import serve as serve
from serving import tiny as tiny
