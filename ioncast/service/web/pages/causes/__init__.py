"""Causes of slow I/O on a page, ranked by the gain of the advice against them."""
