"""Campuses: events become counters, counters become scores, and ended days become history."""
