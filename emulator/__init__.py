"""A local AWS for the demo and the tests: MiniStack, what it lacks, and a clock that can be moved.

Three layers, from the outside in:

- `process.LocalAws` and `cdk` run in the development environment. They start and stop the emulator, move its clock and
  run the real CDK command line against it.
- `overlay` runs inside MiniStack's own process and environment. It restores the AWS behaviour that MiniStack lacks, one
  service per file.
- `site/sitecustomize.py` moves the clock of MiniStack and of every Lambda worker that it starts, and lets functions
  sleep in virtual time.

The product never imports this package.
"""
