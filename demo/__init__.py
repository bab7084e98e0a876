"""A story to watch: the deployed re-driver lives through an outage, on a local AWS, in virtual time.

`story` says what happens when, `stack` holds the handles on what was deployed, `view` shows it,
`summary` adds it up. The end-to-end tests play the same story and look closer.
"""
