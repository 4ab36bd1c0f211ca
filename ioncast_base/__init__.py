"""The ground: modules that every room may use. They import no other room."""
