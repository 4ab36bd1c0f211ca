"""Answers to the scheduler's question, from memory and files: no Flask, no database."""
