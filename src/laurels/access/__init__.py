"""Who may do what: API keys, secrets, players' tokens, signatures, sessions, limits and revocations."""
