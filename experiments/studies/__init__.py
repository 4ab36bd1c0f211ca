"""The case studies of Inria RR-9366 and others: runs them on a platform and reports the results."""
