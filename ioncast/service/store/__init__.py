"""Tables and queries of history, outcomes, decisions, tokens and kept results."""
