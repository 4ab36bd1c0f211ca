"""Pages and figures in HTML and SVG, which need no script and no network."""
