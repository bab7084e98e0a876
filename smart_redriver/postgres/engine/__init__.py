"""A pass's adapters for letters that are rows, over psycopg. Only this package is in the function's bundle."""
