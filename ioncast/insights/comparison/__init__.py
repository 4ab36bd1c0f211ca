"""Tables of one run or of several side by side: differences, texts for people, JSON, CSV, pages."""
