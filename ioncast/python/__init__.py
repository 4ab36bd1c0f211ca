"""The Python interface: functions that do the same as commands, and their results."""
