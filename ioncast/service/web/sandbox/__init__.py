"""Works on uploads in disposable processes with limits on memory and time."""
