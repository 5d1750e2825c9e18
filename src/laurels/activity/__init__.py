"""What people do on a campus: events become counters, counters scores, and days history."""
