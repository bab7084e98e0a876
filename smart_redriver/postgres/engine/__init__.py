"""The adapters of a pass where letters are rows, over psycopg. Only this room is in the function's bundle."""
