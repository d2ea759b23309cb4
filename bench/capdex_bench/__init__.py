"""capdex's bench: query sets, measures, systems and the runs that compare them."""
