"""The time line of a run: which ranks read and wrote when."""
