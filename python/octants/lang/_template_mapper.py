"""A module whose built-in names programs for Quadrants change. Nothing is defined here."""
