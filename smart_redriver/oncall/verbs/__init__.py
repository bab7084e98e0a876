"""Carries out the verbs, one module each (one for two that are opposites). `declarations` says how they are given."""
