"""The ground: what every room needs. It imports nothing of ours."""
