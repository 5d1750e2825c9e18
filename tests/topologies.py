"""Marks for tests that need not run twice, as those of `valkey_url` do."""

from __future__ import annotations

import pytest

on_node = pytest.mark.parametrize("valkey_url", ["node"], indirect=True)
"""What a cluster changes is tested beside it."""
