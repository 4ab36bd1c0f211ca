"""The time that phases took: opens and closes of their files, and pauses between them."""
