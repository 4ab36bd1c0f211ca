"""Values as people see them: drawings and pages."""
