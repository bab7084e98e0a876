"""The function behind the dashboard's widget: what `redrive status` and `redrive causes` say, as HTML.
It reads and no more.
"""
