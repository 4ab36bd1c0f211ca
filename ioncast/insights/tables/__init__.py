"""Tables of a run, as Carns et al. (2009) characterise applications: of all files, or of each."""
